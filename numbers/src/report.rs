//! Reports that people read: one HTML page without outside assets, with plots as SVG in it.

pub mod chart;
pub mod table;

/// Returns the text with what HTML gives a meaning to replaced, for element content and quoted attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Returns a whole page: `title` is text, `body` is HTML. Dark and light by the reader's own setting, printable, usable on a phone.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )
}

const STYLE: &str = include_str!("report/page.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_markup() {
        assert_eq!(escape("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        let page = page("<script>", "<p>body</p>");
        assert!(page.contains("<h1>&lt;script&gt;</h1>\n<p>body</p>") && !page.contains("<script"));
    }

    #[test]
    fn a_page_asks_for_nothing_from_outside() {
        let page = page("title", "");
        assert!(
            !page.contains("http:") && !page.contains("https:") && !page.contains("src=") && !page.contains("url(")
        );
    }
}
