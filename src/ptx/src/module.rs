//! Module scope: directives, variables, functions and their signatures.

use crate::ast::{
    Function, Immediate, Initializer, Linkage, Module, Param, PointerAttribute, Space, Variable,
};
use crate::lexer::TokenKind;
use crate::parser::{Parser, PtxError};
use crate::types::Type;

/// Variables and parameters larger than this are refused rather than laid out.
const MAX_SIZE: u64 = 1 << 31;
/// Kernels with larger parameters are refused: drivers take up to 32764 bytes (CUDA Programming
/// Guide, "Function Parameters"), and what is known of each word is kept.
const MAX_PARAMETERS: u32 = 1 << 16;

/// The words between a space directive and the name it declares.
pub(crate) struct Declared {
    pub(crate) ty: Type,
    pub(crate) vector: u32,
    pub(crate) align: Option<u32>,
    pub(crate) pointer: Option<PointerAttribute>,
}

impl<'a> Parser<'a> {
    pub(crate) fn module(mut self) -> Result<Module, PtxError> {
        let mut module = Module {
            version: (0, 0),
            target: Vec::new(),
            address_size: 64,
            globals: Vec::new(),
            functions: Vec::new(),
        };
        if !self.accept_dot("version") {
            return self.expected("`.version`, which starts every PTX module");
        }
        module.version = self.version()?;
        loop {
            let line = self.line();
            match self.peek() {
                TokenKind::End => return Ok(module),
                TokenKind::Symbol(b';') => {
                    self.advance();
                }
                TokenKind::Dot(word) => {
                    self.advance();
                    match word {
                        "version" => module.version = self.version()?,
                        "target" => {
                            module.target.push(self.name("a target")?);
                            while self.accept(b',') {
                                module.target.push(self.name("a target option")?);
                            }
                        }
                        "address_size" => {
                            module.address_size = self.unsigned("32 or 64")? as u32;
                        }
                        "file" | "loc" => self.skip_line(line),
                        "section" => self.section()?,
                        "pragma" | "alias" => self.skip_past_semicolon()?,
                        _ => self.declaration(&mut module, word, line)?,
                    }
                }
                // Old debug sections: `@@DWARF ...` lines.
                TokenKind::Symbol(b'@') => self.skip_line(line),
                _ => return self.expected("a directive"),
            }
        }
    }

    fn version(&mut self) -> Result<(u32, u32), PtxError> {
        if let TokenKind::Number(text) = self.peek()
            && let Some((major, minor)) = text.split_once('.')
            && let (Ok(major), Ok(minor)) = (major.parse(), minor.parse())
        {
            self.advance();
            return Ok((major, minor));
        }
        self.expected("a version such as 7.8")
    }

    fn section(&mut self) -> Result<(), PtxError> {
        while !self.is(b'{') {
            if self.peek() == TokenKind::End {
                return self.expected("`{`");
            }
            self.advance();
        }
        let mut depth = 0u32;
        loop {
            match self.advance() {
                TokenKind::Symbol(b'{') => depth += 1,
                TokenKind::Symbol(b'}') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                TokenKind::End => return self.expected("`}`"),
                _ => {}
            }
        }
    }

    fn skip_past_semicolon(&mut self) -> Result<(), PtxError> {
        loop {
            match self.advance() {
                TokenKind::Symbol(b';') => return Ok(()),
                TokenKind::End => return self.expected("`;`"),
                _ => {}
            }
        }
    }

    fn declaration(
        &mut self,
        module: &mut Module,
        mut word: &'a str,
        line: u32,
    ) -> Result<(), PtxError> {
        let mut linkage = Linkage::Internal;
        loop {
            match word {
                "visible" => linkage = Linkage::Visible,
                "extern" => linkage = Linkage::Extern,
                "weak" => linkage = Linkage::Weak,
                "common" => linkage = Linkage::Common,
                "entry" | "func" => {
                    let function = self.function(word == "entry", linkage, line)?;
                    module.functions.push(function);
                    return Ok(());
                }
                _ => {
                    let Some(space) = Space::from_name(word) else {
                        return self.error(format!("unknown directive `.{word}` before this"));
                    };
                    return self.variables(space, linkage, line, &mut module.globals);
                }
            }
            match self.peek() {
                TokenKind::Dot(next) => word = next,
                _ => return self.expected("`.func`, `.entry` or a state space"),
            }
            self.advance();
        }
    }

    /// Attributes, alignment, vector and type of a declaration.
    pub(crate) fn declared(&mut self) -> Result<Declared, PtxError> {
        let mut declared = Declared { ty: Type::B8, vector: 1, align: None, pointer: None };
        let mut typed = false;
        while let TokenKind::Dot(word) = self.peek() {
            self.advance();
            match word {
                "align" => {
                    let align = self.unsigned("an alignment")?;
                    if !align.is_power_of_two() || align > 1 << 20 {
                        return self.error("the alignment before this is no power of two");
                    }
                    match &mut declared.pointer {
                        Some(pointer) => pointer.align = align as u32,
                        None => declared.align = Some(align as u32),
                    }
                }
                "v2" => declared.vector = 2,
                "v4" => declared.vector = 4,
                "v8" => declared.vector = 8,
                "ptr" => declared.pointer = Some(PointerAttribute { space: None, align: 4 }),
                "attribute" => {
                    self.expect(b'(')?;
                    while !self.accept(b')') {
                        if self.advance() == TokenKind::End {
                            return self.expected("`)`");
                        }
                    }
                }
                _ => match (Type::from_name(word), Space::from_name(word), &mut declared.pointer) {
                    (Some(ty), ..) => {
                        declared.ty = ty;
                        typed = true;
                    }
                    (None, Some(space), Some(pointer)) => pointer.space = Some(space),
                    // `.param .const .u32 x` and the like: the space of what a pointer points to.
                    (None, Some(_), None) => {}
                    _ => return self.error(format!("unknown type `.{word}` before this")),
                },
            }
        }
        if !typed {
            return self.expected("a type");
        }
        Ok(declared)
    }

    fn dimensions(&mut self) -> Result<Vec<Option<u64>>, PtxError> {
        let mut dims = Vec::new();
        while self.accept(b'[') {
            if self.accept(b']') {
                dims.push(None);
                continue;
            }
            let size = self.constant_integer()?;
            self.expect(b']')?;
            match u64::try_from(size) {
                Ok(size) if size <= MAX_SIZE => dims.push(Some(size)),
                _ => return self.error("the array size before this is out of range"),
            }
        }
        Ok(dims)
    }

    /// The rest of a variable declaration behind its space directive.
    pub(crate) fn variables(
        &mut self,
        space: Space,
        linkage: Linkage,
        line: u32,
        out: &mut Vec<Variable>,
    ) -> Result<(), PtxError> {
        // `.const[3]`: constant banks of old PTX.
        if space == Space::Const && self.accept(b'[') {
            self.unsigned("a constant bank")?;
            self.expect(b']')?;
        }
        let Declared { ty, vector, align, .. } = self.declared()?;
        loop {
            let name = self.name("the name of a variable")?;
            let dims = self.dimensions()?;
            let init = if self.accept(b'=') { Some(self.initializer()?) } else { None };
            let align = align.unwrap_or(ty.size() * vector);
            let variable = Variable { name, space, linkage, ty, vector, align, dims, init, line };
            if variable.size() > MAX_SIZE {
                return self.error("the variable before this is too large");
            }
            out.push(variable);
            if !self.accept(b',') {
                return self.expect(b';');
            }
        }
    }

    fn initializer(&mut self) -> Result<Initializer, PtxError> {
        if self.accept(b'{') {
            let mut items = Vec::new();
            while !self.accept(b'}') {
                items.push(self.nested(|p| p.initializer())?);
                if !self.accept(b',') {
                    self.expect(b'}')?;
                    break;
                }
            }
            return Ok(Initializer::List(items));
        }
        if let TokenKind::Name(name) = self.peek() {
            let call = self.peek_at(1) == TokenKind::Symbol(b'(');
            self.advance();
            let generic = name == "generic" && call;
            let name = if call {
                if !generic {
                    return self.error("only `generic(...)` and `mask(...)` may stand here");
                }
                self.advance();
                let name = self.name("a variable")?;
                self.expect(b')')?;
                name
            } else {
                name.to_owned()
            };
            let mut offset = 0;
            if matches!(self.peek(), TokenKind::Symbol(b'+' | b'-')) {
                if self.is(b'+') {
                    self.advance();
                }
                offset = self.constant_integer()?;
            }
            return Ok(Initializer::Symbol { name, offset, generic });
        }
        Ok(Initializer::Value(self.constant()?))
    }

    fn function(
        &mut self,
        is_entry: bool,
        linkage: Linkage,
        line: u32,
    ) -> Result<Function, PtxError> {
        if self.peek() == TokenKind::Dot("attribute") {
            self.advance();
            self.params()?;
        }
        let returns = if self.is(b'(') { self.params()? } else { Vec::new() };
        let name = self.name("the name of a function")?;
        let params = if self.is(b'(') { self.params()? } else { Vec::new() };
        let params_size = params.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
        if is_entry && params_size > MAX_PARAMETERS {
            return self.error(format!(
                "at most {MAX_PARAMETERS} bytes of parameters for a kernel, not {params_size}, before this"
            ));
        }
        let mut function = Function {
            name,
            is_entry,
            linkage,
            returns,
            params,
            params_size,
            max_threads: None,
            required_threads: false,
            directives: Vec::new(),
            body: None,
            line,
        };
        while let TokenKind::Dot(word) = self.peek() {
            // A declaration needs no semicolon: the next directive of the module ends it.
            if matches!(
                word,
                "visible" | "extern" | "weak" | "common" | "entry" | "func" | "section" | "alias"
            ) || Space::from_name(word).is_some()
            {
                return Ok(function);
            }
            self.function_directive(&mut function, word)?;
        }
        if self.is(b'{') {
            function.body = Some(self.body()?);
        } else {
            self.expect(b';')?;
        }
        Ok(function)
    }

    fn function_directive(&mut self, function: &mut Function, word: &str) -> Result<(), PtxError> {
        let line = self.line();
        self.advance();
        if matches!(word, "loc" | "file") {
            self.skip_line(line);
            return Ok(());
        }
        let mut values = Vec::new();
        while let TokenKind::Number(_) | TokenKind::String(_) = self.peek() {
            match self.peek() {
                TokenKind::Number(_) => values.push(self.constant_integer()? as u64),
                _ => {
                    self.advance();
                }
            }
            if !self.accept(b',') {
                break;
            }
        }
        // `.pragma "x";` between signature and body.
        if word == "pragma" {
            self.accept(b';');
        }
        if matches!(word, "maxntid" | "reqntid") {
            let dim = |at: usize| values.get(at).map_or(1, |&v| v.min(1 << 20) as u32);
            function.max_threads = Some([dim(0), dim(1), dim(2)]);
            function.required_threads = word == "reqntid";
        }
        function.directives.push((word.to_owned(), values));
        Ok(())
    }

    /// `(.param .u64 a, .reg .b32 b)` with offsets laid out.
    pub(crate) fn params(&mut self) -> Result<Vec<Param>, PtxError> {
        self.expect(b'(')?;
        let mut params: Vec<Param> = Vec::new();
        let mut end = 0u64;
        if self.accept(b')') {
            return Ok(params);
        }
        loop {
            let line = self.line();
            let space = match self.peek() {
                TokenKind::Dot("param") => Space::Param,
                TokenKind::Dot("reg") => Space::Register,
                _ => return self.expected("`.param` or `.reg`"),
            };
            self.advance();
            let declared = self.declared()?;
            let name = self.name("the name of a parameter")?;
            let dims = self.dimensions()?;
            let element = u64::from(declared.ty.size() * declared.vector);
            let count = dims.iter().fold(1u64, |n, d| n.saturating_mul(d.unwrap_or(0)));
            let size = element.saturating_mul(count);
            let align = declared.align.unwrap_or(declared.ty.size() * declared.vector);
            let offset = end.next_multiple_of(u64::from(align));
            end = offset + size;
            if end > MAX_SIZE {
                return self.error("the parameters before this are too large");
            }
            params.push(Param {
                name,
                space,
                ty: declared.ty,
                size: size as u32,
                align,
                offset: offset as u32,
                pointer: declared.pointer,
                line,
            });
            if self.accept(b')') {
                return Ok(params);
            }
            self.expect(b',')?;
        }
    }

    /// An integer value that a directive gives as an immediate.
    pub(crate) fn small(&mut self, what: &str) -> Result<u32, PtxError> {
        match self.unary()? {
            Immediate::Int(value) => match u32::try_from(value) {
                Ok(value) => Ok(value),
                Err(_) => self.error(format!("{what} before this is out of range")),
            },
            _ => self.expected(what),
        }
    }
}
