//! The function `initcap`: the first letter of each word in title case, as defined by Unicode. Only a space ends a
//! word.

/// Returns the text with the first letter of each word in title case and all other letters in lower case.
pub(super) fn init_cap(text: &str) -> String {
    let mut capital = String::with_capacity(text.len());
    let mut is_first = true;
    for letter in text.to_lowercase().chars() {
        if is_first {
            push_title(&mut capital, letter);
        } else {
            capital.push(letter);
        }
        is_first = letter == ' ';
    }
    capital
}

fn push_title(text: &mut String, letter: char) {
    const IOTA_BELOW: char = '\u{345}';
    match letter {
        'ǆ' => text.push('ǅ'),
        'ǉ' => text.push('ǈ'),
        'ǌ' => text.push('ǋ'),
        'ǳ' => text.push('ǲ'),
        // Georgian does not use capitals at the start of words.
        'ა'..='ჺ' | 'ჽ'..='ჿ' => text.push(letter),
        // Greek letters with iota subscript: the title-case letter is 8 code points later.
        '\u{1f80}'..='\u{1faf}' => text.extend(char::from_u32(u32::from(letter) | 8)),
        'ᾳ' => text.push('ᾼ'),
        'ῃ' => text.push('ῌ'),
        'ῳ' => text.push('ῼ'),
        '\u{1fb2}'..='\u{1ff7}' => {
            text.extend(letter.to_uppercase().map(|c| if c == 'Ι' { IOTA_BELOW } else { c }))
        }
        _ => {
            let mut upper = letter.to_uppercase();
            let first = upper.next().unwrap_or(letter);
            text.push(first);
            // If the upper case has several characters, those after a first upper-case letter become lower case: `ß`
            // becomes `Ss`. But `ŉ` becomes `ʼN`, because `ʼ` is not in upper case.
            match first.is_uppercase() {
                true => text.extend(upper.flat_map(char::to_lowercase)),
                false => text.extend(upper),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_with_title_case() {
        for (text, expected) in [
            ("hello wORLD  again", "Hello World  Again"),
            ("a-b c_d\te 1f _g", "A-b C_d\te 1f _g"),
            ("ß ünï ŉx ﬃx և", "Ss Ünï ʼNx Ffix Եւ"),
            ("ǆ ა ᾳ ᾴ ΑΣ", "ǅ ა ᾼ Άͅ Ας"),
            ("", ""),
        ] {
            assert_eq!(init_cap(text), expected);
        }
    }
}
