//! Drops the expressions, symbols and loops that no access of a summary depends on: an
//! interpretation makes many more expressions than its conclusions hold.
//!
//! Stage: the summary, its last step.
//!
//! Invariant: the remaining items keep their order, so that terms stay sorted.

use crate::access::domain::expression::{ExprId, Polynomial, Symbol, SymbolId};
use crate::access::summary::result::{GatedPhi, KernelAccess, Length};

/// The items that accesses depend on, and those whose dependences have not been followed yet.
struct Reachable<F> {
    expressions: Vec<bool>,
    symbols: Vec<bool>,
    loops: Vec<bool>,
    gated_phis: Vec<GatedPhi>,
    phi: F,
    work: Vec<ExprId>,
}

impl<F: FnMut(SymbolId) -> Option<GatedPhi>> Reachable<F> {
    fn expression(&mut self, id: ExprId) {
        if !std::mem::replace(&mut self.expressions[id.0 as usize], true) {
            self.work.push(id);
        }
    }

    fn symbol(&mut self, kernel: &KernelAccess, id: SymbolId) {
        if std::mem::replace(&mut self.symbols[id.0 as usize], true) {
            return;
        }
        match kernel.symbols[id.0 as usize] {
            Symbol::Function(_, a, b) => {
                self.expression(a);
                self.expression(b);
            }
            Symbol::ExitValue(of) => self.symbol(kernel, of),
            Symbol::Induction(header) => {
                let Some(at) = kernel.loops.iter().position(|l| l.header == header) else { return };
                self.loops[at] = true;
                for condition in &kernel.loops[at].back_edge {
                    self.expression(condition.expression);
                }
            }
            _ => {
                if let Some(phi) = (self.phi)(id) {
                    for (source, gates) in &phi.inputs {
                        self.expression(*source);
                        gates.iter().for_each(|condition| self.expression(condition.expression));
                    }
                    self.gated_phis.push(phi);
                }
            }
        }
    }
}

/// The new number of each that is kept.
fn numbers(kept: &[bool]) -> Vec<u32> {
    let mut next = 0;
    let number = |&kept: &bool| {
        next += u32::from(kept);
        next - u32::from(kept)
    };
    kept.iter().map(number).collect()
}

fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut at = kept.iter();
    items.retain(|_| at.next() == Some(&true));
}

/// `phi` tells the gated φ that a symbol is, if it is one.
pub(in crate::access) fn prune(
    mut kernel: KernelAccess,
    phi: impl FnMut(SymbolId) -> Option<GatedPhi>,
) -> KernelAccess {
    let mut reachable = Reachable {
        expressions: vec![false; kernel.expressions.len()],
        symbols: vec![false; kernel.symbols.len()],
        loops: vec![false; kernel.loops.len()],
        gated_phis: Vec::new(),
        phi,
        work: Vec::new(),
    };
    for access in &kernel.accesses {
        access.address.iter().for_each(|&id| reachable.expression(id));
        access.conditions.iter().for_each(|condition| reachable.expression(condition.expression));
        if let Length::Expression(id) = access.length {
            reachable.expression(id);
        }
    }
    while let Some(id) = reachable.work.pop() {
        let Polynomial { terms, no_wraps } = &kernel.expressions[id.0 as usize];
        for &symbol in terms.iter().flat_map(|term| &term.symbols) {
            reachable.symbol(&kernel, symbol);
        }
        no_wraps.iter().for_each(|no_wrap| reachable.expression(no_wrap.expression));
    }
    let Reachable { expressions, symbols, loops, gated_phis, .. } = reachable;
    kernel.gated_phis = gated_phis;
    kernel.gated_phis.sort_unstable_by_key(|phi| phi.symbol);
    let (new_expressions, new_symbols) = (numbers(&expressions), numbers(&symbols));
    let expression = |id: &mut ExprId| id.0 = new_expressions[id.0 as usize];
    let symbol = |id: &mut SymbolId| id.0 = new_symbols[id.0 as usize];

    retain(&mut kernel.bounds, &symbols);
    retain(&mut kernel.loops, &loops);
    retain(&mut kernel.symbols, &symbols);
    retain(&mut kernel.expressions, &expressions);
    for polynomial in &mut kernel.expressions {
        polynomial.terms.iter_mut().flat_map(|term| &mut term.symbols).for_each(symbol);
        polynomial.no_wraps.iter_mut().for_each(|no_wrap| expression(&mut no_wrap.expression));
    }
    for kept in &mut kernel.symbols {
        match kept {
            Symbol::Function(_, a, b) => {
                expression(a);
                expression(b);
            }
            Symbol::ExitValue(of) => symbol(of),
            _ => {}
        }
    }
    for phi in &mut kernel.gated_phis {
        symbol(&mut phi.symbol);
        for (source, gates) in &mut phi.inputs {
            expression(source);
            gates.iter_mut().for_each(|condition| expression(&mut condition.expression));
        }
    }
    let back_edge = kernel.loops.iter_mut().flat_map(|l| &mut l.back_edge);
    let conditions = kernel.accesses.iter_mut().flat_map(|access| &mut access.conditions);
    back_edge.chain(conditions).for_each(|condition| expression(&mut condition.expression));
    for access in &mut kernel.accesses {
        access.address.iter_mut().for_each(expression);
        if let Length::Expression(id) = &mut access.length {
            expression(id);
        }
    }
    kernel.expressions.shrink_to_fit();
    kernel.symbols.shrink_to_fit();
    kernel
}
