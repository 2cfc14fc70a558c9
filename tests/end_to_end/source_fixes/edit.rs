//! The calls of one fix in the source of a program.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{LineColumn, Span};
use quote::ToTokens;
use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprCall, ExprClosure, ExprForLoop, ExprMethodCall, FnArg, ItemFn, Local, Pat,
};
use syn::{PatType, Stmt};

/// Why a fix is not written into a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// The fix has no calls: the memory must live longer, a graph be built otherwise.
    NoCalls,
    /// A line is not one of the program's file.
    OtherFile,
    /// Nothing can follow the statement at the line.
    LastExpression,
    /// The statement at the line is given no stream, or several.
    NoStream,
}

/// The source with the calls of a finding's fix.
///
/// # Errors
/// Why the calls cannot be written.
pub(super) fn with_fix(
    source: &str,
    path: &Path,
    finding: &Value,
    number: usize,
) -> Result<String, Refusal> {
    let steps = finding["fix"]["steps"].as_array().filter(|steps| !steps.is_empty());
    let file = syn::parse_file(source).expect("a source that was built");
    let mut insertions = Vec::new();
    for step in steps.ok_or(Refusal::NoCalls)? {
        let word = |key: &str| step[key].as_str().expect("a text");
        let (when, place) = word("place").split_once(' ').expect("a place");
        let (name, line) = place.rsplit_once(':').ok_or(Refusal::OtherFile)?;
        if !path.ends_with(name) && Path::new(name) != path {
            return Err(Refusal::OtherFile);
        }
        let statement = Statement::at(&file, line.parse().expect("a line"))?;
        let call = statement.call(word("code"), number)?;
        let at = match when {
            "before" => statement.begin,
            "after" if statement.ends => statement.end,
            _ => return Err(Refusal::LastExpression),
        };
        insertions.push((offset(source, at), call));
    }
    let mut fixed = source.to_owned();
    // From behind, so that the places before stay where they are. Calls of one place keep their order.
    insertions.reverse();
    insertions.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, call) in insertions {
        fixed.insert_str(at, &format!(" {call} "));
    }
    fixed += &format!(
        "\nstatic EVENT_{number}: std::sync::OnceLock<program_support::Event> = \
         std::sync::OnceLock::new();\n"
    );
    Ok(fixed)
}

fn offset(source: &str, at: LineColumn) -> usize {
    let lines = source.split_inclusive('\n').take(at.line - 1);
    let before: usize = lines.map(str::len).sum();
    let line = source[before..].lines().next().unwrap_or_default();
    before + line.char_indices().nth(at.column).map_or(line.len(), |(offset, _)| offset)
}

/// The innermost statement at a line, and the streams that it is given.
struct Statement {
    begin: LineColumn,
    end: LineColumn,
    /// Whether another statement can follow.
    ends: bool,
    streams: BTreeSet<String>,
}

impl Statement {
    fn at(file: &syn::File, line: usize) -> Result<Self, Refusal> {
        let mut search = Search { line, known: BTreeSet::new(), found: None };
        search.visit_file(file);
        let Search { known, found, .. } = search;
        let statement = found.ok_or(Refusal::OtherFile)?;
        let mut given = Given { known: &known, streams: BTreeSet::new() };
        given.visit_stmt(statement);
        let streams = given.streams;
        let ends = !matches!(statement, Stmt::Expr(_, None)) || is_block_like(statement);
        let span = statement.span();
        Ok(Self { begin: span.start(), end: span.end(), ends, streams })
    }

    /// A call of the driver in the words of the programs' bindings.
    fn call(&self, code: &str, number: usize) -> Result<String, Refusal> {
        let (call, rest) = code.split_once('(').expect("a call");
        let parameters = rest.trim_end_matches(')').split(", ");
        let parameters: Vec<&str> = parameters.collect();
        let event = format!(
            "EVENT_{number}.get_or_init(|| program_support::Event::create().expect(\"an event\"))"
        );
        let stream = |name: &str| match name {
            "CU_STREAM_LEGACY" => Ok("program_support::Stream::legacy()".to_owned()),
            "CU_STREAM_PER_THREAD" => Ok("program_support::Stream::per_thread()".to_owned()),
            _ if self.streams.len() == 1 => {
                Ok(format!("({})", self.streams.first().map_or("", String::as_str)))
            }
            _ => Err(Refusal::NoStream),
        };
        let call = match (call, parameters.as_slice()) {
            ("cuEventRecord", ["event", on]) => format!("{event}.record(&{})", stream(on)?),
            ("cuStreamWaitEvent", [to, "event", "0"]) => format!("{}.wait({event})", stream(to)?),
            ("cuStreamSynchronize", [on]) => format!("{}.synchronize()", stream(on)?),
            ("cuEventSynchronize", ["event"]) => format!("{event}.synchronize()"),
            _ => panic!("not one of the driver's calls that order: {code}"),
        };
        Ok(format!("{call}.expect(\"a call of the fix\");"))
    }
}

/// Whether a statement without a semicolon may have another one behind it.
fn is_block_like(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::ForLoop(_) | Expr::While(_), None))
}

/// Looks for the statement, and keeps which variables are streams.
struct Search<'a> {
    line: usize,
    known: BTreeSet<String>,
    found: Option<&'a Stmt>,
}

fn holds(span: Span, line: usize) -> bool {
    (span.start().line..=span.end().line).contains(&line)
}

impl Search<'_> {
    /// Takes the names of a pattern for streams.
    fn bind(&mut self, pattern: &Pat) {
        let mut names = Names(Vec::new());
        names.visit_pat(pattern);
        self.known.extend(names.0);
    }

    /// Whether an expression gives a stream, several, or a reference to one.
    fn gives_stream(&self, value: &Expr) -> bool {
        match value {
            Expr::Reference(of) => self.gives_stream(&of.expr),
            Expr::Index(of) => self.gives_stream(&of.expr),
            Expr::Paren(of) => self.gives_stream(&of.expr),
            Expr::Try(of) => self.gives_stream(&of.expr),
            Expr::Path(path) => {
                path.path.get_ident().is_some_and(|name| self.known.contains(&name.to_string()))
            }
            Expr::Tuple(of) => of.elems.iter().any(|value| self.gives_stream(value)),
            Expr::Array(of) => of.elems.iter().any(|value| self.gives_stream(value)),
            Expr::If(branches) => {
                branches.then_branch.stmts.last().is_some_and(|last| match last {
                    Stmt::Expr(value, None) => self.gives_stream(value),
                    _ => false,
                })
            }
            Expr::Call(_) | Expr::MethodCall(_) => {
                // `Stream::blocking()`, also within a closure that makes several.
                value.to_token_stream().to_string().contains("Stream ::")
            }
            _ => false,
        }
    }
}

impl<'a> Visit<'a> for Search<'a> {
    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        if holds(function.span(), self.line) {
            self.known.clear();
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_fn_arg(&mut self, argument: &'a FnArg) {
        if let FnArg::Typed(PatType { pat, ty, .. }) = argument
            && ty.to_token_stream().to_string().contains("Stream")
        {
            self.bind(pat);
        }
    }

    fn visit_expr_closure(&mut self, closure: &'a ExprClosure) {
        for input in &closure.inputs {
            if let Pat::Type(PatType { pat, ty, .. }) = input
                && ty.to_token_stream().to_string().contains("Stream")
            {
                self.bind(pat);
            }
        }
        visit::visit_expr_closure(self, closure);
    }

    fn visit_expr_for_loop(&mut self, each: &'a ExprForLoop) {
        if self.gives_stream(&each.expr) {
            self.bind(&each.pat);
        }
        visit::visit_expr_for_loop(self, each);
    }

    fn visit_local(&mut self, local: &'a Local) {
        if local.init.as_ref().is_some_and(|init| self.gives_stream(&init.expr)) {
            self.bind(&local.pat);
        }
        visit::visit_local(self, local);
    }

    fn visit_block(&mut self, block: &'a Block) {
        for statement in &block.stmts {
            let is_after = statement.span().start().line > self.line;
            if is_after {
                break;
            }
            if holds(statement.span(), self.line) {
                self.found = Some(statement);
            }
            self.visit_stmt(statement);
        }
    }
}

struct Names(Vec<String>);

impl Visit<'_> for Names {
    fn visit_pat_ident(&mut self, name: &syn::PatIdent) {
        self.0.push(name.ident.to_string());
    }
}

/// The streams that calls are given as arguments.
struct Given<'a> {
    known: &'a BTreeSet<String>,
    streams: BTreeSet<String>,
}

impl Given<'_> {
    fn take(&mut self, argument: &Expr) {
        let of = match argument {
            Expr::Reference(of) => &of.expr,
            other => other,
        };
        let root = match of {
            Expr::Index(of) => &of.expr,
            other => other,
        };
        if let Expr::Path(path) = root
            && path.path.get_ident().is_some_and(|name| self.known.contains(&name.to_string()))
        {
            self.streams.insert(of.to_token_stream().to_string());
        }
    }
}

impl Visit<'_> for Given<'_> {
    fn visit_expr_call(&mut self, call: &ExprCall) {
        call.args.iter().for_each(|argument| self.take(argument));
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        call.args.iter().for_each(|argument| self.take(argument));
        visit::visit_expr_method_call(self, call);
    }
}
