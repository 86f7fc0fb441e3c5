//! The wire format of protocol buffers, as far as ONNX needs it.
//!
//! Source: protobuf.dev, "Encoding".

use super::ModelError;

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
}

/// A field's value, by wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// The fields of one message. It ends after the first error.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for index in 0..10 {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * index)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.take()?),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(self.take()?),
            _ => return None,
        };
        (tag >> 3 != 0).then_some(Field { number: tag >> 3, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, ModelError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(ModelError::NotOnnx))
    }
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], ModelError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(ModelError::NotOnnx),
        }
    }

    pub(super) fn text(self) -> Result<String, ModelError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| ModelError::NotOnnx)
    }

    pub(super) fn integer(self) -> Result<i64, ModelError> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => Err(ModelError::NotOnnx),
        }
    }

    pub(super) fn float(self) -> Result<f32, ModelError> {
        match self {
            Self::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(ModelError::NotOnnx),
        }
    }

    /// Appends the elements of a repeated integer, packed or not.
    pub(super) fn integers(self, list: &mut Vec<i64>) -> Result<(), ModelError> {
        let Self::Bytes(bytes) = self else {
            list.push(self.integer()?);
            return Ok(());
        };
        let mut packed = Fields(bytes);
        while !packed.0.is_empty() {
            list.push(packed.varint().ok_or(ModelError::NotOnnx)? as i64);
        }
        Ok(())
    }

    /// Appends the elements of a repeated float, packed or not.
    pub(super) fn floats(self, list: &mut Vec<f32>) -> Result<(), ModelError> {
        let Self::Bytes(bytes) = self else {
            list.push(self.float()?);
            return Ok(());
        };
        list.extend(floats(bytes)?);
        Ok(())
    }

    /// Appends the elements of a repeated 64-bit float, packed or not, rounded.
    pub(super) fn doubles(self, list: &mut Vec<f32>) -> Result<(), ModelError> {
        match self {
            Self::Bytes(bytes) => list.extend(doubles(bytes)?),
            Self::Fixed64(bytes) => list.push(f64::from_le_bytes(bytes) as f32),
            Self::Varint(_) | Self::Fixed32(_) => return Err(ModelError::NotOnnx),
        }
        Ok(())
    }
}

/// Little-endian 64-bit floats, rounded to the nearest 32-bit float.
pub(super) fn doubles(bytes: &[u8]) -> Result<Vec<f32>, ModelError> {
    let (chunks, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(ModelError::NotOnnx);
    }
    Ok(chunks.iter().map(|chunk| f64::from_le_bytes(*chunk) as f32).collect())
}

/// Little-endian floats.
pub(super) fn floats(bytes: &[u8]) -> Result<Vec<f32>, ModelError> {
    let (chunks, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(ModelError::NotOnnx);
    }
    Ok(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
}
