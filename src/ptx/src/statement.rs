//! Function bodies: statements, instructions and operands.

use crate::ast::{
    Address, AddressBase, Body, Guard, Immediate, Instruction, Linkage, Operand, Registers, Space,
    Statement, StatementKind,
};
use crate::lexer::TokenKind;
use crate::module::Declared;
use crate::parser::{Parser, PtxError};

impl Parser<'_> {
    pub(crate) fn body(&mut self) -> Result<Body, PtxError> {
        let (statements, end_line) = self.block()?;
        Ok(Body { statements, end_line })
    }

    /// The statements of a block and the line of its closing brace.
    fn block(&mut self) -> Result<(Vec<Statement>, u32), PtxError> {
        self.expect(b'{')?;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                TokenKind::Symbol(b'}') => {
                    let end_line = self.line();
                    self.advance();
                    return Ok((out, end_line));
                }
                TokenKind::Symbol(b';') => {
                    self.advance();
                }
                TokenKind::End => return self.expected("`}`"),
                _ => self.statement(&mut out)?,
            }
        }
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Result<(), PtxError> {
        let line = self.line();
        let mut push = |kind| out.push(Statement { line, kind });
        match self.peek() {
            TokenKind::Symbol(b'{') => {
                let (inner, _) = self.nested(|p| p.block())?;
                push(StatementKind::Block(inner));
            }
            TokenKind::Name(name) if self.peek_at(1) == TokenKind::Symbol(b':') => {
                self.advance();
                self.advance();
                if let Some(kind) = self.labelled_directive(name)? {
                    push(kind);
                } else {
                    push(StatementKind::Label(name.to_owned()));
                }
            }
            TokenKind::Symbol(b'@') | TokenKind::Name(_) => {
                let instruction = self.instruction()?;
                push(StatementKind::Instruction(instruction));
            }
            TokenKind::Dot(word) => {
                self.advance();
                self.directive(word, line, out)?;
            }
            _ => return self.expected("a statement"),
        }
        Ok(())
    }

    fn directive(
        &mut self,
        word: &str,
        line: u32,
        out: &mut Vec<Statement>,
    ) -> Result<(), PtxError> {
        match word {
            "reg" => {
                let Declared { ty, vector, .. } = self.declared()?;
                loop {
                    let name = self.name("the name of a register")?;
                    let count = if self.accept(b'<') {
                        let count = self.small("the number of registers")?;
                        self.expect(b'>')?;
                        Some(count)
                    } else {
                        None
                    };
                    let registers = Registers { ty, vector, name, count };
                    out.push(Statement { line, kind: StatementKind::Registers(registers) });
                    if !self.accept(b',') {
                        return self.expect(b';');
                    }
                }
            }
            "loc" => {
                let mut numbers = [0u32; 3];
                for number in &mut numbers {
                    if let TokenKind::Number(_) = self.peek() {
                        *number = self.small("a source position")?;
                    }
                }
                self.skip_line(line);
                let [file, line_of_source, column] = numbers;
                let kind = StatementKind::Location { file, line: line_of_source, column };
                out.push(Statement { line, kind });
                Ok(())
            }
            "file" => {
                self.skip_line(line);
                Ok(())
            }
            "pragma" => {
                let mut strings = Vec::new();
                while let TokenKind::String(text) = self.peek() {
                    strings.push(text.to_owned());
                    self.advance();
                    self.accept(b',');
                }
                out.push(Statement { line, kind: StatementKind::Pragma(strings) });
                self.expect(b';')
            }
            _ => match Space::from_name(word) {
                Some(space) => {
                    let mut variables = Vec::new();
                    self.variables(space, Linkage::Internal, line, &mut variables)?;
                    out.extend(variables.into_iter().map(|variable| Statement {
                        line,
                        kind: StatementKind::Variable(variable),
                    }));
                    Ok(())
                }
                None => self.error(format!("unknown directive `.{word}` before this")),
            },
        }
    }

    /// A directive that only makes sense behind a label.
    fn labelled_directive(&mut self, name: &str) -> Result<Option<StatementKind>, PtxError> {
        let name = name.to_owned();
        let kind = if self.accept_dot("branchtargets") {
            StatementKind::BranchTargets { name, labels: self.names()? }
        } else if self.accept_dot("calltargets") {
            StatementKind::CallTargets { name, functions: self.names()? }
        } else if self.accept_dot("callprototype") {
            let returns = if self.is(b'(') { self.params()? } else { Vec::new() };
            self.name("`_`")?;
            let params = if self.is(b'(') { self.params()? } else { Vec::new() };
            while let TokenKind::Dot(_) | TokenKind::Number(_) = self.peek() {
                self.advance();
            }
            StatementKind::CallPrototype { name, returns, params }
        } else {
            return Ok(None);
        };
        self.expect(b';')?;
        Ok(Some(kind))
    }

    fn names(&mut self) -> Result<Vec<String>, PtxError> {
        let mut names = vec![self.name("a name")?];
        while self.accept(b',') {
            names.push(self.name("a name")?);
        }
        Ok(names)
    }

    fn instruction(&mut self) -> Result<Instruction, PtxError> {
        let guard = if self.accept(b'@') {
            let negated = self.accept(b'!');
            Some(Guard { predicate: self.name("a predicate register")?, negated })
        } else {
            None
        };
        let (line, column) = (self.line(), self.column());
        let opcode = self.name("an instruction")?;
        let mut modifiers = Vec::new();
        while let TokenKind::Dot(word) = self.peek() {
            modifiers.push(word.to_owned());
            self.advance();
        }
        let mut operands = Vec::new();
        if !self.is(b';') {
            loop {
                operands.push(self.operand()?);
                if !self.accept(b',') {
                    break;
                }
            }
        }
        if !self.accept(b';') {
            return self.expected("`,` or `;`");
        }
        Ok(Instruction { guard, opcode, modifiers, operands, line, column })
    }

    fn operand(&mut self) -> Result<Operand, PtxError> {
        let first = self.simple_operand()?;
        if self.accept(b'|') {
            let second = self.simple_operand()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn list(&mut self, close: u8) -> Result<Vec<Operand>, PtxError> {
        let mut items = Vec::new();
        while !self.accept(close) {
            items.push(self.nested(|p| p.operand())?);
            if !self.accept(b',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn simple_operand(&mut self) -> Result<Operand, PtxError> {
        match self.peek() {
            TokenKind::Name("_") => {
                self.advance();
                Ok(Operand::Sink)
            }
            TokenKind::Name(_) => {
                let name = self.dotted_name()?;
                if matches!(self.peek(), TokenKind::Symbol(b'+' | b'-')) {
                    let offset = self.offset()?;
                    return Ok(Operand::SymbolOffset(name, offset));
                }
                Ok(Operand::Name(name))
            }
            TokenKind::Symbol(b'!') => {
                self.advance();
                let inner = self.nested(|p| p.simple_operand())?;
                Ok(Operand::Not(Box::new(inner)))
            }
            TokenKind::Symbol(b'{') => {
                self.advance();
                Ok(Operand::Vector(self.list(b'}')?))
            }
            TokenKind::Symbol(b'[') => {
                self.advance();
                Ok(Operand::Address(self.address()?))
            }
            TokenKind::Symbol(b'(') if !self.parenthesised_constant() => {
                self.advance();
                Ok(Operand::Group(self.list(b')')?))
            }
            _ if self.at_constant() => Ok(Operand::Immediate(self.constant()?)),
            _ => self.expected("an operand"),
        }
    }

    /// `(` of a call's arguments holds names, or constants separated by commas; `(` of a constant
    /// expression is followed by an operator behind its `)`.
    fn parenthesised_constant(&self) -> bool {
        let mut depth = 0u32;
        for ahead in 0.. {
            match self.peek_at(ahead) {
                TokenKind::Symbol(b'(') => depth += 1,
                TokenKind::Symbol(b')') => {
                    depth -= 1;
                    if depth == 0 {
                        return !matches!(
                            self.peek_at(ahead + 1),
                            TokenKind::Symbol(b',' | b';') | TokenKind::End
                        );
                    }
                }
                TokenKind::Number(_) | TokenKind::Double(_) => {}
                TokenKind::Symbol(
                    b'+' | b'-' | b'*' | b'/' | b'%' | b'~' | b'&' | b'|' | b'^' | b'<' | b'>',
                ) => {}
                _ => return false,
            }
        }
        false
    }

    /// A name with its component: `%tid.x`, `%vector.y`.
    fn dotted_name(&mut self) -> Result<String, PtxError> {
        let mut name = self.name("a name")?;
        while let TokenKind::Dot(word) = self.peek() {
            name.push('.');
            name.push_str(word);
            self.advance();
        }
        Ok(name)
    }

    fn offset(&mut self) -> Result<i64, PtxError> {
        if self.is(b'+') {
            self.advance();
        }
        self.constant_integer()
    }

    fn address(&mut self) -> Result<Address, PtxError> {
        let base = match self.peek() {
            TokenKind::Name(_) => AddressBase::Name(self.dotted_name()?),
            _ => AddressBase::Absolute,
        };
        let offset = match (&base, self.peek()) {
            (AddressBase::Absolute, _) | (_, TokenKind::Symbol(b'+' | b'-')) => {
                if self.is(b'+') {
                    self.advance();
                }
                match self.constant()? {
                    Immediate::Int(value) => value,
                    _ => return self.error("the offset before this is no integer"),
                }
            }
            _ => 0,
        };
        let rest = if self.accept(b',') {
            self.list(b']')?
        } else {
            self.expect(b']')?;
            Vec::new()
        };
        Ok(Address { base, offset, rest })
    }
}
