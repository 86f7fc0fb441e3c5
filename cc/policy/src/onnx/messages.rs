//! The messages of an ONNX file, as far as a policy needs them. Field numbers are those of `onnx.proto3`.

use super::ModelError;
use super::protobuf::{self, Fields, Value};
use std::collections::BTreeMap;

/// `ModelProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelMessage {
    pub(super) graph: Option<GraphMessage>,
    /// Version of the default operator set.
    pub(super) opset: i64,
    pub(super) metadata: BTreeMap<String, String>,
}

/// `GraphProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct GraphMessage {
    pub(super) nodes: Vec<NodeMessage>,
    pub(super) initializers: Vec<TensorMessage>,
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Vec<ValueInfo>,
}

/// `NodeProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeMessage {
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) operator: String,
    pub(super) domain: String,
    pub(super) attributes: BTreeMap<String, Attribute>,
}

/// `AttributeProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribute {
    pub(super) float: f32,
    pub(super) integer: i64,
    pub(super) text: String,
    pub(super) texts: Vec<String>,
    pub(super) integers: Vec<i64>,
    pub(super) floats: Vec<f32>,
    pub(super) tensor: Option<TensorMessage>,
}

/// `TensorProto` of floats or of 64-bit integers. 64-bit floats are rounded.
#[derive(Clone, Debug, Default)]
pub(super) struct TensorMessage {
    pub(super) name: String,
    pub(super) dims: Vec<i64>,
    pub(super) floats: Vec<f32>,
    pub(super) integers: Vec<i64>,
    /// `TensorProto.DataType`.
    pub(super) element_type: i64,
}

/// `ValueInfoProto`: an input or an output of the graph.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueInfo {
    pub(super) name: String,
    /// `TensorProto.DataType`; 1 is float.
    pub(super) element_type: i64,
    /// The dimensions; `None` for one without a fixed size.
    pub(super) dims: Vec<Option<i64>>,
}

/// `TensorProto.DataType`.
pub(super) const FLOAT: i64 = 1;
pub(super) const INT64: i64 = 7;
/// A 64-bit float.
pub(super) const DOUBLE: i64 = 11;

pub(super) fn model(bytes: &[u8]) -> Result<ModelMessage, ModelError> {
    let mut message = ModelMessage::default();
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            7 => message.graph = Some(graph(field.value.bytes()?)?),
            8 => {
                let (domain, version) = operator_set(field.value.bytes()?)?;
                if domain.is_empty() || domain == "ai.onnx" {
                    message.opset = version;
                }
            }
            14 => {
                let (key, value) = entry(field.value.bytes()?)?;
                message.metadata.insert(key, value);
            }
            _ => {}
        }
    }
    Ok(message)
}

fn operator_set(bytes: &[u8]) -> Result<(String, i64), ModelError> {
    let (mut domain, mut version) = (String::new(), 0);
    for field in Fields::new(bytes) {
        match field? {
            protobuf::Field { number: 1, value } => domain = value.text()?,
            protobuf::Field { number: 2, value } => version = value.integer()?,
            _ => {}
        }
    }
    Ok((domain, version))
}

fn entry(bytes: &[u8]) -> Result<(String, String), ModelError> {
    let mut entry = [String::new(), String::new()];
    for field in Fields::new(bytes) {
        let field = field?;
        if let 1 | 2 = field.number {
            entry[(field.number - 1) as usize] = field.value.text()?;
        }
    }
    let [key, value] = entry;
    Ok((key, value))
}

fn graph(bytes: &[u8]) -> Result<GraphMessage, ModelError> {
    let mut message = GraphMessage::default();
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => message.nodes.push(node(field.value.bytes()?)?),
            5 => message.initializers.push(tensor(field.value.bytes()?)?),
            11 => message.inputs.push(value_info(field.value.bytes()?)?),
            12 => message.outputs.push(value_info(field.value.bytes()?)?),
            _ => {}
        }
    }
    Ok(message)
}

fn node(bytes: &[u8]) -> Result<NodeMessage, ModelError> {
    let mut message = NodeMessage::default();
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => message.inputs.push(field.value.text()?),
            2 => message.outputs.push(field.value.text()?),
            4 => message.operator = field.value.text()?,
            5 => {
                let (name, attribute) = attribute(field.value.bytes()?)?;
                message.attributes.insert(name, attribute);
            }
            7 => message.domain = field.value.text()?,
            _ => {}
        }
    }
    Ok(message)
}

fn attribute(bytes: &[u8]) -> Result<(String, Attribute), ModelError> {
    let (mut name, mut message) = (String::new(), Attribute::default());
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => name = field.value.text()?,
            2 => message.float = field.value.float()?,
            3 => message.integer = field.value.integer()?,
            4 => message.text = String::from_utf8_lossy(field.value.bytes()?).into_owned(),
            5 => message.tensor = Some(tensor(field.value.bytes()?)?),
            7 => field.value.floats(&mut message.floats)?,
            8 => field.value.integers(&mut message.integers)?,
            9 => message.texts.push(String::from_utf8_lossy(field.value.bytes()?).into_owned()),
            _ => {}
        }
    }
    Ok((name, message))
}

fn tensor(bytes: &[u8]) -> Result<TensorMessage, ModelError> {
    let (mut message, mut raw) = (TensorMessage::default(), None);
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            1 => field.value.integers(&mut message.dims)?,
            2 => message.element_type = field.value.integer()?,
            4 => field.value.floats(&mut message.floats)?,
            7 => field.value.integers(&mut message.integers)?,
            8 => message.name = field.value.text()?,
            9 => raw = Some(field.value.bytes()?),
            10 => field.value.doubles(&mut message.floats)?,
            13 => return Err(ModelError::ExternalData),
            _ => {}
        }
    }
    match (message.element_type, raw) {
        (FLOAT, Some(raw)) => message.floats = protobuf::floats(raw)?,
        (INT64, Some(raw)) => {
            let (chunks, rest) = raw.as_chunks();
            if !rest.is_empty() {
                return Err(ModelError::NotOnnx);
            }
            message.integers = chunks.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect();
        }
        (DOUBLE, Some(raw)) => message.floats = protobuf::doubles(raw)?,
        (FLOAT | INT64 | DOUBLE, None) => {}
        _ => return Err(ModelError::ElementType(message.name)),
    }
    Ok(message)
}

fn value_info(bytes: &[u8]) -> Result<ValueInfo, ModelError> {
    let mut message = ValueInfo::default();
    for field in Fields::new(bytes) {
        match field? {
            protobuf::Field { number: 1, value } => message.name = value.text()?,
            protobuf::Field { number: 2, value } => value_type(value, &mut message)?,
            _ => {}
        }
    }
    Ok(message)
}

/// `TypeProto`; only tensors are supported.
fn value_type(value: Value<'_>, message: &mut ValueInfo) -> Result<(), ModelError> {
    let tensor = Fields::new(value.bytes()?).find(|field| field.as_ref().is_ok_and(|field| field.number == 1));
    let Some(tensor) = tensor else { return Ok(()) };
    for field in Fields::new(tensor?.value.bytes()?) {
        match field? {
            protobuf::Field { number: 1, value } => message.element_type = value.integer()?,
            protobuf::Field { number: 2, value } => {
                for dimension in Fields::new(value.bytes()?) {
                    let mut size = None;
                    for field in Fields::new(dimension?.value.bytes()?) {
                        let field = field?;
                        if field.number == 1 {
                            size = Some(field.value.integer()?);
                        }
                    }
                    message.dims.push(size);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
