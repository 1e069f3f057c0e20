//! Names for planted data: people, places to eat and months.

const FIRST: [&str; 50] = [
    "Ada", "Amir", "Ana", "Anton", "Aoife", "Bea", "Ben", "Carla", "Chen", "Clara", "Dara",
    "David", "Elif", "Emil", "Emma", "Farah", "Finn", "Greta", "Hana", "Hugo", "Ines", "Isaac",
    "Ivan", "Jan", "June", "Kai", "Kofi", "Lara", "Leo", "Lin", "Lucia", "Luis", "Maja", "Marco",
    "Mei", "Milan", "Mona", "Nadia", "Nils", "Noor", "Omar", "Paula", "Quinn", "Rosa", "Sami",
    "Sofia", "Tariq", "Theo", "Yuki", "Zoe",
];

const LAST: [&str; 80] = [
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

/// What places are: their category, and what such places call themselves.
pub(super) const CATEGORIES: [(&str, [&str; 4]); 6] = [
    ("Italian", ["Trattoria", "Osteria", "Pizzeria", "Enoteca"]),
    ("Sushi", ["Sushi Bar", "Izakaya", "Ramen House", "Sakana"]),
    ("Vegan", ["Garden", "Greenhouse", "Kitchen", "Sprout"]),
    ("Steakhouse", ["Grill", "Smokehouse", "Butcher", "Charcoal"]),
    ("Bakery", ["Bakery", "Patisserie", "Oven", "Crust"]),
    ("Tapas", ["Tapas", "Bodega", "Taberna", "Cantina"]),
];

pub(super) const CITIES: [&str; 4] = ["Lisbon", "Berlin", "Kyoto", "Dublin"];

const CALLED: [&str; 40] = [
    "Amber", "Blue", "Brass", "Bright", "Broken", "Cedar", "Clover", "Copper", "Corner", "Crooked",
    "Crystal", "Dancing", "Early", "Emerald", "Fox", "Garnet", "Gentle", "Golden", "Grand",
    "Hidden", "Honest", "Iron", "Ivory", "Jolly", "Lantern", "Lucky", "Marble", "Merry",
    "Midnight", "Old", "Olive", "Pearl", "Quiet", "Red", "Royal", "Silver", "Sparrow", "Sunday",
    "Velvet", "Wild",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The name of person number `i`; the first 4,000 are all different.
pub(super) fn person(i: usize) -> String {
    // Steps without a common divisor go through all pairs before one comes again.
    let (first, last) = (i % FIRST.len(), (i + i / 400) % LAST.len());
    match i / (FIRST.len() * LAST.len()) {
        0 => format!("{} {}", FIRST[first], LAST[last]),
        again => format!("{} {} {}", FIRST[first], LAST[last], again + 1),
    }
}

/// The name of a place: `before` is how many of the same category and city came before it.
pub(super) fn place(category: usize, city: usize, before: usize) -> String {
    let own = CATEGORIES[category].1;
    // Different for each pair, so that not every city has an Amber Trattoria first.
    let start = 7 * category + 11 * city;
    let called = CALLED[(start + before) % CALLED.len()];
    let what = own[(before / CALLED.len() + before) % own.len()];
    let more = match before / (CALLED.len() * own.len()) {
        0 => String::new(),
        n => format!(" {}", n + 1),
    };
    format!("{called} {what}{more}, {}", CITIES[city])
}

pub(super) fn month(i: usize) -> String {
    format!("{} {}", MONTHS[i % 12], 2023 + i / 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_different() {
        let people: HashSet<String> = (0..9000).map(person).collect();
        assert_eq!(people.len(), 9000);
        let mut places = HashSet::new();
        for category in 0..CATEGORIES.len() {
            for city in 0..CITIES.len() {
                places.extend((0..300).map(|k| place(category, city, k)));
            }
        }
        assert_eq!(places.len(), 300 * CATEGORIES.len() * CITIES.len());
        assert_eq!(
            (month(0), month(23)),
            ("Jan 2023".into(), "Dec 2024".into())
        );
    }
}
