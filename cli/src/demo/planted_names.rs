//! Names for the rows and columns of the planted data: people, places to eat, categories, cities and months.

const FIRST_NAMES: [&str; 50] = [
    "Ada", "Amir", "Ana", "Anton", "Aoife", "Bea", "Ben", "Carla", "Chen", "Clara", "Dara",
    "David", "Elif", "Emil", "Emma", "Farah", "Finn", "Greta", "Hana", "Hugo", "Ines", "Isaac",
    "Ivan", "Jan", "June", "Kai", "Kofi", "Lara", "Leo", "Lin", "Lucia", "Luis", "Maja", "Marco",
    "Mei", "Milan", "Mona", "Nadia", "Nils", "Noor", "Omar", "Paula", "Quinn", "Rosa", "Sami",
    "Sofia", "Tariq", "Theo", "Yuki", "Zoe",
];

const LAST_NAMES: [&str; 80] = [
    "Abe", "Adler", "Ahmed", "Almeida", "Bauer", "Becker", "Berg", "Bianchi", "Brandt", "Byrne",
    "Campos", "Carter", "Castro", "Chang", "Costa", "Dahl", "Dias", "Dubois", "Duran", "Eder",
    "Evans", "Farkas", "Fischer", "Fontaine", "Fujita", "Garcia", "Gomez", "Green", "Haas",
    "Hansen", "Hayes", "Hoffman", "Horvat", "Hughes", "Ito", "Jansen", "Jensen", "Kaya", "Keller",
    "Khan", "Kim", "Klein", "Kovac", "Kumar", "Lang", "Larsen", "Lee", "Lopez", "Lund", "Marin",
    "Martin", "Mendes", "Meyer", "Moreau", "Morris", "Nagy", "Nakamura", "Novak", "Nunez",
    "Okafor", "Olsen", "Ortiz", "Park", "Patel", "Petrov", "Ramos", "Reyes", "Ricci", "Rossi",
    "Santos", "Sato", "Silva", "Singh", "Stein", "Suzuki", "Tanaka", "Torres", "Vogel", "Walsh",
    "Weber",
];

/// Categories of places, each with the nouns of place names.
pub(super) const CATEGORIES: [(&str, [&str; 4]); 6] = [
    ("Italian", ["Trattoria", "Osteria", "Pizzeria", "Enoteca"]),
    ("Sushi", ["Sushi Bar", "Izakaya", "Ramen House", "Sakana"]),
    ("Vegan", ["Garden", "Greenhouse", "Kitchen", "Sprout"]),
    ("Steakhouse", ["Grill", "Smokehouse", "Butcher", "Charcoal"]),
    ("Bakery", ["Bakery", "Patisserie", "Oven", "Crust"]),
    ("Tapas", ["Tapas", "Bodega", "Taberna", "Cantina"]),
];

pub(super) const CITIES: [&str; 4] = ["Lisbon", "Berlin", "Kyoto", "Dublin"];

/// First words of place names.
const PLACE_WORDS: [&str; 40] = [
    "Amber", "Blue", "Brass", "Bright", "Broken", "Cedar", "Clover", "Copper", "Corner", "Crooked",
    "Crystal", "Dancing", "Early", "Emerald", "Fox", "Garnet", "Gentle", "Golden", "Grand",
    "Hidden", "Honest", "Iron", "Ivory", "Jolly", "Lantern", "Lucky", "Marble", "Merry",
    "Midnight", "Old", "Olive", "Pearl", "Quiet", "Red", "Royal", "Silver", "Sparrow", "Sunday",
    "Velvet", "Wild",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns the name of person `i`. Names after the first 4,000 repeat with a number.
pub(super) fn person_name(i: usize) -> String {
    // The shift of the last name after each 400 people makes all pairs occur once.
    let (first, last) = (i % FIRST_NAMES.len(), (i + i / 400) % LAST_NAMES.len());
    match i / (FIRST_NAMES.len() * LAST_NAMES.len()) {
        0 => format!("{} {}", FIRST_NAMES[first], LAST_NAMES[last]),
        repeat => format!("{} {} {}", FIRST_NAMES[first], LAST_NAMES[last], repeat + 1),
    }
}

/// Returns the name of a place. `number` counts the places of the same category and city from 0.
pub(super) fn place_name(category: usize, city: usize, number: usize) -> String {
    let nouns = CATEGORIES[category].1;
    // Each category and city starts with another word.
    let start = 7 * category + 11 * city;
    let word = PLACE_WORDS[(start + number) % PLACE_WORDS.len()];
    let noun = nouns[(number / PLACE_WORDS.len() + number) % nouns.len()];
    let suffix = match number / (PLACE_WORDS.len() * nouns.len()) {
        0 => String::new(),
        n => format!(" {}", n + 1),
    };
    format!("{word} {noun}{suffix}, {}", CITIES[city])
}

/// Returns the name of month `i`; month 0 is January 2023.
pub(super) fn month_name(i: usize) -> String {
    format!("{} {}", MONTHS[i % 12], 2023 + i / 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let people: HashSet<String> = (0..9000).map(person_name).collect();
        assert_eq!(people.len(), 9000);
        let mut places = HashSet::new();
        for category in 0..CATEGORIES.len() {
            for city in 0..CITIES.len() {
                places.extend((0..300).map(|k| place_name(category, city, k)));
            }
        }
        assert_eq!(places.len(), 300 * CATEGORIES.len() * CITIES.len());
        assert_eq!(
            (month_name(0), month_name(23)),
            ("Jan 2023".into(), "Dec 2024".into())
        );
    }
}
