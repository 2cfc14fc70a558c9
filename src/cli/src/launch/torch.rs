//! The variables by which PyTorch is told how to allocate (PyTorch, "CUDA semantics", Memory
//! management).

use crate::options::TorchAllocator;

/// The variable of all versions, and the one that has stood beside it since 2.9.
const VARIABLES: [&str; 2] = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

/// The variables with this allocator chosen and all else as it is set. Versions differ in which one
/// counts, so both are set; an unset one takes over what the other says.
///
/// # Errors
/// One paragraph for the user, if another allocator is set.
pub(super) fn variables(
    allocator: TorchAllocator,
    given: impl Fn(&str) -> Option<String>,
) -> Result<[(&'static str, String); 2], String> {
    let [first, second] = VARIABLES.map(|name| given(name).filter(|list| !list.trim().is_empty()));
    for (name, list) in VARIABLES.iter().zip([&first, &second]) {
        let chosen = list.as_deref().and_then(backend);
        if let Some(chosen) = chosen.filter(|chosen| *chosen != allocator.backend()) {
            return Err(format!(
                "{name} asks PyTorch for backend:{chosen} and --torch-allocator for backend:{}; \
                 take the one out of the variable, or leave the option out",
                allocator.backend()
            ));
        }
    }
    let with = |own: &Option<String>, other: &Option<String>| {
        let choice = format!("backend:{}", allocator.backend());
        match own.as_deref().or(other.as_deref()) {
            None => choice,
            Some(list) if backend(list).is_some() => list.to_owned(),
            Some(list) => format!("{},{choice}", list.trim_end_matches([',', ' '])),
        }
    };
    Ok([(VARIABLES[0], with(&first, &second)), (VARIABLES[1], with(&second, &first))])
}

/// The allocator that a list chooses. Values in brackets are lists themselves.
fn backend(list: &str) -> Option<&str> {
    let mut depth = 0;
    let separates = |character| {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    };
    let chosen = list.split(separates).filter_map(|entry| entry.split_once(':'));
    let mut chosen = chosen.filter(|(key, _)| key.trim() == "backend");
    chosen.next_back().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cuda: &str, newer: &str) -> Result<[String; 2], String> {
        let given = |name: &str| {
            let value = if name == "PYTORCH_ALLOC_CONF" { newer } else { cuda };
            (!value.is_empty()).then(|| value.to_owned())
        };
        let variables = variables(TorchAllocator::Async, given)?;
        assert_eq!(variables.each_ref().map(|(name, _)| *name), VARIABLES);
        Ok(variables.map(|(_, value)| value))
    }

    #[test]
    fn lists_are_kept() {
        let alone = "backend:cudaMallocAsync";
        let split = "max_split_size_mb:64";
        let powers = "roundup_power2_divisions:[256:1,backend:2],garbage_collection_threshold:0.8";
        for (cuda, newer, expected) in [
            ("", "", [alone.to_owned(), alone.to_owned()]),
            (" ", "", [alone.to_owned(), alone.to_owned()]),
            (split, "", [format!("{split},{alone}"), format!("{split},{alone}")]),
            ("", split, [format!("{split},{alone}"), format!("{split},{alone}")]),
            (split, powers, [format!("{split},{alone}"), format!("{powers},{alone}")]),
            ("x:1, ", "", [format!("x:1,{alone}"), format!("x:1,{alone}")]),
            // Chosen already.
            (
                "backend:cudaMallocAsync,x:1",
                "",
                [
                    "backend:cudaMallocAsync,x:1".to_owned(),
                    "backend:cudaMallocAsync,x:1".to_owned(),
                ],
            ),
            (
                "x:1, backend : cudaMallocAsync",
                split,
                ["x:1, backend : cudaMallocAsync".to_owned(), format!("{split},{alone}")],
            ),
        ] {
            assert_eq!(set(cuda, newer), Ok(expected), "{cuda:?} {newer:?}");
        }
    }

    #[test]
    fn another_allocator_is_an_error_of_one_paragraph() {
        for (cuda, newer) in
            [("x:1,backend:native", ""), ("", "backend:native"), (" backend : native ", "x:1")]
        {
            let error = set(cuda, newer).expect_err("a conflict");
            assert!(error.contains("backend:native and --torch-allocator"), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
