//! The operations of a model, over slices of 32-bit floats.

/// An operation with all values that follow from the shapes of its operands.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// `[rows, inner] x [inner, columns]`.
    MatMul { inner: usize, columns: usize },
    /// A function of one number, applied to each element.
    Unary(Unary),
    /// A function of two numbers, with the indices of both operands for each element of the result.
    Binary(Binary, Vec<[u32; 2]>),
    /// The elements at these positions.
    Pick(Vec<u32>),
    /// Sums of products: the positions of the factors in both operands, and the end of each sum in this list.
    Products { pairs: Vec<[u32; 2]>, ends: Vec<u32> },
    /// Concatenation: blocks of these lengths, one from each operand in turn.
    Concat(Vec<usize>),
    /// Softmax over blocks of this length.
    Softmax(usize),
    /// Normalises blocks of this length to mean 0 and variance 1, with this epsilon.
    Normalise(usize, f32),
}

/// A function of one number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unary {
    Abs,
    Clip(f32, f32),
    Elu(f32),
    Erf,
    Exp,
    LeakyRelu(f32),
    Neg,
    Relu,
    Sigmoid,
    Softplus,
    Sqrt,
    Tanh,
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binary {
    Add,
    Div,
    Max,
    Min,
    Mul,
    Sub,
}

impl Operation {
    /// Writes the result for `operands` to `result`, which has the right length.
    pub(super) fn apply(&self, operands: &[&[f32]], result: &mut [f32]) {
        let first = operands[0];
        match self {
            Self::MatMul { inner, columns } => {
                for (row, result) in first.chunks_exact(*inner).zip(result.chunks_exact_mut(*columns)) {
                    multiply(row, operands[1], result);
                }
            }
            Self::Unary(function) => {
                first.iter().zip(result).for_each(|(x, result)| *result = function.of(*x));
            }
            Self::Binary(function, indices) => {
                for ([left, right], result) in indices.iter().zip(result) {
                    *result = function.of(first[*left as usize], operands[1][*right as usize]);
                }
            }
            Self::Pick(places) => {
                places.iter().zip(result).for_each(|(place, result)| *result = first[*place as usize]);
            }
            Self::Products { pairs, ends } => products(first, operands[1], pairs, ends, result),
            Self::Concat(lens) => concat(operands, lens, result),
            Self::Softmax(len) => {
                first.chunks_exact(*len).zip(result.chunks_exact_mut(*len)).for_each(|(x, result)| softmax(x, result));
            }
            Self::Normalise(len, epsilon) => {
                let blocks = first.chunks_exact(*len).zip(result.chunks_exact_mut(*len));
                blocks.for_each(|(x, result)| normalise(x, *epsilon, result));
            }
        }
    }
}

/// `row x matrix`. Every sum runs over the rows of the matrix in order; the compiler may compute several columns at
/// once.
fn multiply(row: &[f32], matrix: &[f32], result: &mut [f32]) {
    result.fill(0.0);
    for (factor, weights) in row.iter().zip(matrix.chunks_exact(result.len())) {
        result.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += factor * weight);
    }
}

/// Sums of products, each in the order of its products.
fn products(left: &[f32], right: &[f32], pairs: &[[u32; 2]], ends: &[u32], result: &mut [f32]) {
    let mut start = 0;
    for (end, result) in ends.iter().zip(result) {
        let pairs = &pairs[start..*end as usize];
        *result = sum(pairs.iter().map(|[a, b]| left[*a as usize] * right[*b as usize]));
        start = *end as usize;
    }
}

fn concat(operands: &[&[f32]], lens: &[usize], result: &mut [f32]) {
    let mut rest = result;
    let blocks = operands[0].len() / lens[0];
    for block in 0..blocks {
        for (operand, len) in operands.iter().zip(lens) {
            let (head, tail) = rest.split_at_mut(*len);
            head.copy_from_slice(&operand[block * len..][..*len]);
            rest = tail;
        }
    }
}

fn softmax(x: &[f32], result: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    result.iter_mut().zip(x).for_each(|(result, x)| *result = libm::expf(x - max));
    let sum = sum(result.iter().copied());
    result.iter_mut().for_each(|result| *result /= sum);
}

fn normalise(x: &[f32], epsilon: f32, result: &mut [f32]) {
    let mean = sum(x.iter().copied()) / x.len() as f32;
    let variance = sum(x.iter().map(|x| (x - mean) * (x - mean))) / x.len() as f32;
    let deviation = (variance + epsilon).sqrt();
    result.iter_mut().zip(x).for_each(|(result, x)| *result = (x - mean) / deviation);
}

/// The sum in order from the first number: `Iterator::sum` does not promise an order.
fn sum(numbers: impl Iterator<Item = f32>) -> f32 {
    numbers.fold(0.0, |sum, x| sum + x)
}

impl Unary {
    fn of(self, x: f32) -> f32 {
        match self {
            Self::Abs => x.abs(),
            Self::Clip(min, max) => x.clamp(min, max),
            Self::Elu(alpha) if x < 0.0 => alpha * libm::expm1f(x),
            Self::Erf => libm::erff(x),
            Self::Exp => libm::expf(x),
            Self::LeakyRelu(alpha) if x < 0.0 => alpha * x,
            Self::Neg => -x,
            Self::Relu if x < 0.0 => 0.0,
            Self::Elu(_) | Self::LeakyRelu(_) | Self::Relu => x,
            Self::Sigmoid => 1.0 / (1.0 + libm::expf(-x)),
            Self::Softplus if x > 0.0 => x + libm::log1pf(libm::expf(-x)),
            Self::Softplus => libm::log1pf(libm::expf(x)),
            Self::Sqrt => x.sqrt(),
            Self::Tanh => libm::tanhf(x),
        }
    }
}

impl Binary {
    fn of(self, left: f32, right: f32) -> f32 {
        match self {
            Self::Add => left + right,
            Self::Div => left / right,
            // A NaN is kept.
            Self::Max if left > right || left.is_nan() => left,
            Self::Min if left < right || left.is_nan() => left,
            Self::Max | Self::Min => right,
            Self::Mul => left * right,
            Self::Sub => left - right,
        }
    }
}
