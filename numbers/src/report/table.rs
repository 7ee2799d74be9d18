//! A table, as text in columns and as HTML.

use std::fmt;

use super::escape;

/// Rows of cells under headings; the first column is text, the others are numbers and stand to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What the columns are.
    pub head: Vec<String>,
    /// As many cells as headings each.
    pub rows: Vec<Vec<String>>,
    /// How many columns from the left are text.
    pub text: usize,
}

impl Table {
    /// Returns it as HTML, in a box that scrolls where the screen is narrow.
    #[must_use]
    pub fn html(&self, caption: &str) -> String {
        let class = |column: usize| if column < self.text { " class=\"text\"" } else { "" };
        let mut html = format!("<div class=\"scroll\">\n<table>\n<caption>{}</caption>\n<thead><tr>", escape(caption));
        for (column, cell) in self.head.iter().enumerate() {
            html += &format!("<th scope=\"col\"{}>{}</th>", class(column), escape(cell));
        }
        html += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            html += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let (kind, scope) = if column == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
                html += &format!("<{kind}{scope}{}>{}</{kind}>", class(column), escape(cell));
            }
            html += "</tr>\n";
        }
        html + "</tbody>\n</table>\n</div>\n"
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells =
            |column: usize| std::iter::once(&self.head).chain(&self.rows).filter_map(move |row| row.get(column));
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                line +=
                    &if column < self.text { format!("{gap}{cell:<width$}") } else { format!("{gap}{cell:>width$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        Table {
            head: row(["name", "calls", "good"]),
            rows: vec![row(["<a>", "7", "100.0 %"]), row(["longer", "12", "9 %"])],
            text: 1,
        }
    }

    #[test]
    fn columns_stand_under_their_headings() {
        assert_eq!(table().to_string(), "name    calls     good\n<a>         7  100.0 %\nlonger     12      9 %\n");
    }

    #[test]
    fn cells_are_text() {
        let html = table().html("what & where");
        assert!(
            html.contains("<th scope=\"row\" class=\"text\">&lt;a&gt;</th><td>7</td>")
                && html.contains("what &amp; where")
        );
    }
}
