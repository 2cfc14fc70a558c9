//! The same document in fewer bytes: a page of a thousand findings has tens of thousands of elements.

use std::borrow::Cow;

/// End tags that HTML does without where another element of the kind, or the end of the parent,
/// follows (<https://html.spec.whatwg.org/multipage/syntax.html#optional-tags>), as it always does in a
/// page.
const OPTIONAL: [&str; 7] = ["</li>", "</dt>", "</dd>", "</tr>", "</td>", "</th>", "</tbody>"];

/// Leaves out what the reader of a document adds again. Takes what the templates made: `<` and `>` stand
/// in tags only, and every attribute in quotation marks.
pub(super) fn tighten(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let (text, tail) = rest.split_at(start);
        out += &text.replace("&quot;", "\"");
        let end = tail.find('>').map_or(tail.len(), |at| at + 1);
        let (tag, behind) = tail.split_at(end);
        rest = behind;
        if OPTIONAL.contains(&tag) {
            continue;
        }
        match rest.strip_prefix("</path>") {
            Some(behind) if tag.starts_with("<path ") => {
                out += tag.strip_suffix('>').unwrap_or(tag);
                out += "/>";
                rest = behind;
            }
            _ => out += &without_quotes(tag),
        }
    }
    out + &rest.replace("&quot;", "\"")
}

/// A tag without the quotation marks that its attributes do not need.
fn without_quotes(tag: &str) -> Cow<'_, str> {
    if tag.ends_with("/>") || !tag.contains("=\"") {
        return Cow::Borrowed(tag);
    }
    let is_plain = |value: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '#' | '.');
        !value.is_empty() && value.chars().all(plain)
    };
    let mut pieces = tag.split('"');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    while let (Some(value), Some(behind)) = (pieces.next(), pieces.next()) {
        let mark = if is_plain(value) { "" } else { "\"" };
        out = out + mark + value + mark + behind;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::tighten;

    #[test]
    fn text_and_attributes_stay_what_they_are() {
        let page = "<ul><li title=\"&quot;a\">&quot;b&quot; &lt;/li&gt;</li></ul>&quot;";
        assert_eq!(tighten(page), "<ul><li title=\"&quot;a\">\"b\" &lt;/li&gt;</ul>\"");
        assert_eq!(tighten("<path d=\"M0\"></path><p></p>"), "<path d=\"M0\"/><p></p>");
        let tag = "<a class=\"b\" href=\"#x y\" title=\"\" id=\"c-1\">";
        assert_eq!(tighten(tag), "<a class=b href=\"#x y\" title=\"\" id=c-1>");
        assert_eq!(tighten("a"), "a");
    }
}
