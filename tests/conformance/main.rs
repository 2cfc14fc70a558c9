//! Precision, recall and F1 of the analysis over the corpus of text traces, beside what PyTorch's
//! CUDA sanitizer answers for the same cases (`traces/csan.tsv`, derived by reading its source).
//!
//! Prints Markdown; `docs/conformance.md` keeps it, and a test holds the two together.
//!
//! A finding counts once: expected and found (true positive), found and not expected (false
//! positive), expected and not found (false negative). A file counts by what a build would see:
//! racy files in which something is reported, clean ones in which nothing is.
#![forbid(unsafe_code)]

mod corpus;
mod sanitizer;
mod score;

use corpus::{Case, GROUPS, Truth};
use sanitizer::Answer;
use score::Score;
use std::process::ExitCode;

fn main() -> ExitCode {
    match report() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}

fn report() -> Result<String, String> {
    let cases = corpus::read()?;
    let answers = sanitizer::read(&cases)?;
    let mut out = String::new();

    out += "Findings, one by one:\n\n";
    out += "| group | files | expected findings | found | missed | wrong | precision | recall | F1 |\n";
    out += "|---|---|---|---|---|---|---|---|---|\n";
    for (name, members) in groups(&cases) {
        let score = members.iter().fold(Score::default(), |sum, case| sum + case.findings);
        out += &format!(
            "| {name} | {} | {} | {} | {} | {} | {} |\n",
            members.len(),
            score.true_positives + score.false_negatives,
            score.true_positives,
            score.false_negatives,
            score.false_positives,
            score.rates(),
        );
    }

    out += "\nFiles, each racy or clean by the documentation:\n\n";
    out +=
        "| group | racy | clean | who | racy flagged | clean flagged | precision | recall | F1 |\n";
    out += "|---|---|---|---|---|---|---|---|---|\n";
    for (name, members) in groups(&cases) {
        let mut ours = Score::default();
        let mut theirs = Score::default();
        let mut visible = Score::default();
        for case in &members {
            ours.count(case.truth == Truth::Racy, case.is_flagged);
            let Some(&answer) = answers.get(&case.path) else { continue };
            theirs.count(case.truth == Truth::Racy, answer == Answer::Flagged);
            if answer != Answer::NotVisible {
                visible.count(case.truth == Truth::Racy, answer == Answer::Flagged);
            }
        }
        let rows = [
            ("streamsan", ours),
            ("PyTorch's sanitizer", theirs),
            ("PyTorch's sanitizer, visible cases only", visible),
        ];
        for (who, score) in rows {
            out += &format!(
                "| {name} | {} | {} | {who} | {} | {} | {} |\n",
                score.true_positives + score.false_negatives,
                score.false_positives + score.true_negatives,
                score.true_positives,
                score.false_positives,
                score.rates(),
            );
        }
    }

    out += "\nWhat PyTorch's sanitizer answers, by `traces/csan.tsv`:\n\n";
    out += "| group | truth | flagged | silent | not visible to it | not judged |\n";
    out += "|---|---|---|---|---|---|\n";
    for (name, members) in groups(&cases) {
        for truth in [Truth::Racy, Truth::Clean] {
            let of_truth = || members.iter().filter(|case| case.truth == truth);
            let answered = |wanted: Option<Answer>| {
                of_truth().filter(|case| answers.get(&case.path).copied() == wanted).count()
            };
            out += &format!(
                "| {name} | {} | {} | {} | {} | {} |\n",
                truth.description(),
                answered(Some(Answer::Flagged)),
                answered(Some(Answer::Silent)),
                answered(Some(Answer::NotVisible)),
                answered(None),
            );
        }
    }
    Ok(out)
}

/// The groups, and all cases together.
fn groups(cases: &[Case]) -> Vec<(&'static str, Vec<&Case>)> {
    let mut groups: Vec<(&'static str, Vec<&Case>)> = GROUPS
        .iter()
        .map(|&group| (group, cases.iter().filter(|case| case.group == group).collect()))
        .collect();
    groups.push(("all", cases.iter().collect()));
    groups
}
