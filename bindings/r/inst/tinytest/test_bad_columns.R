# Columns of unusual classes, duplicated names, and empty data.
source("helper.R")
ratings <- fixture_ratings()
names <- named_ratings()
formula <- rating ~ user + film + month
fit <- function(data, ...) s3cmtf(formula, data, rank = 2, epochs = 1, ...)
model <- fit(ratings)
named <- fit(names)
bad <- function(expression, pattern) expect_error(expression, pattern = pattern, class = "s3cmtf_BAD_ARGUMENT")
with_column <- function(data, column, value) {
  data[[column]] <- value
  data
}

# Lists, matrices and 64-bit integers of package bit64.
wide <- structure(as.double(1:600), class = "integer64")
bad(fit(with_column(ratings, "user", as.list(ratings$user))), "mode user is of class list")
bad(fit(with_column(ratings, "rating", as.list(ratings$rating))), "values are of class list")
bad(fit(with_column(ratings, "user", cbind(ratings$user, 1L))), "mode user are a matrix with 2 columns")
bad(fit(with_column(ratings, "user", wide)), "mode user are of class integer64; convert them with as.double")
bad(fit(with_column(ratings, "rating", wide)), "the values are of class integer64")
bad(fit(with_column(ratings, "rating", as.Date("2024-01-01") + ratings$rating)), "values are of class Date")
for (of in list(list(model, ratings), list(named, names))) {
  bad(predict(of[[1]], with_column(of[[2]], "user", as.list(ratings$user))), "mode user is of class list")
  bad(predict(of[[1]], with_column(of[[2]], "user", wide)), "integer64")
  bad(predict(of[[1]], with_column(of[[2]], "user", cbind(ratings$user, 1L))), "matrix with 2 columns")
}
bad(predict(model, with_column(ratings, "user", as.Date("2024-01-01") + ratings$user)), "mode user is of class Date")
expect_equal(factors(fit(with_column(ratings, "user", as.matrix(ratings$user)))), factors(model))

# NA is not a name, also if it is a level.
missing <- with_column(names, "user", factor(ifelse(names$user == "u2", NA, as.character(names$user)), exclude = NULL))
expect_error(fit(missing), pattern = "entry 11: the index of mode user is NA", class = "s3cmtf_BAD_ENTRY")
expect_equal(which(is.na(predict(named, missing))), 11:20)
expect_equal(factors(fit(with_column(names, "user", addNA(names$user)))), factors(named))

# Names of columns.
twice <- cbind(ratings, user = 1L)
bad(fit(twice), "two columns are named user")
bad(as_coo_tensor(twice), "two columns are named user")
bad(predict(model, twice), "two columns are named user")
bad(predict(load_model(save_model(model, scratch("model.s3m"))), twice), "two columns are named user")
expect_equal(fit(cbind(ratings, other = 1, other = 2))$modes, c("user", "film", "month"))
expect_equal(as_coo_tensor(setNames(ratings, c("user", NA, "", "rating")))$modes, c("user", "mode2", "mode3"))
bad(as_coo_tensor(data.frame()), "no columns")

# The column of values: the only one, or the one with a usual name, or the only one with numbers.
value_of <- function(data, ...) as.data.frame(as_coo_tensor(data, ...))$value
raw <- data.frame(user = 1:2, film = c(1L, 1L), rating = c(3.5, 4), time = factor(c("b", "a")))
for (name in c("rating", "VALUE", "Stars", "score", " count ")) {
  expect_equal(value_of(setNames(raw, c("user", "film", name, "time"))), c(3.5, 4))
}
expect_equal(value_of(data.frame(user = c("a", "b"), x = 3:4, film = c("c", "d"))), c(3, 4))
expect_equal(value_of(data.frame(user = c("a", "b"), x = 3:4, w = 1:2, film = c("c", "d")), weights = "w"), c(3, 4))
numbers <- data.frame(user = 1:2, film = c(1, 1), x = 3:4)
bad(as_coo_tensor(numbers), "user, film, x have numbers, and none is called rating, value, stars, score or count; name it, .*value = \"x\"")
expect_equal(value_of(numbers, value = "x"), c(3, 4))
bad(as_coo_tensor(data.frame(user = c("a", "b"), rating = 1, score = 2)), "rating, score may have them")
bad(as_coo_tensor(data.frame(user = c("a", "b"), film = c("c", "d"))), "no column of numbers")
bad(coupled(data.frame(film = 1:2, genre = c("c", "d"), x = 3:4)), "film, x have numbers")
expect_equal(coupled(data.frame(film = 1:2, genre = c("c", "d"), x = 3:4), value = "x")$tensor$modes, c("film", "genre"))
# Entries of a model without a formula, in which other columns may follow.
loaded <- load_model(save_model(named, scratch("named.s3m")))
loaded["spec"] <- list(NULL)
expect_equal(evaluate(loaded, cbind(names, time = 1)), evaluate(loaded, names))
bad(evaluate(loaded, setNames(cbind(names, time = 1), c("user", "film", "month", "x", "time"))), "x, time have numbers")

# No entries.
bad(fit(ratings[0, ]), "there are no entries")
bad(fit(names[0, ]), "there are no entries")
bad(coupled(data.frame(film = character(), genre = character())), "there are no entries")
expect_equal(predict(named, names[0, ]), numeric())
expect_equal(dim(coo_tensor(integer(), integer(), dims = c(2, 3))), 2:3)

# Arrays and tables.
expect_equal(sum(as.data.frame(as_coo_tensor(table(ratings$user, ratings$film)))$value), 600)
bad(as_coo_tensor(diag(2), drop_zeros = "yes"), "drop_zeros must be TRUE or FALSE")
bad(open_coo(""), "path must be one string that is not empty")

# Lists are at most as long as the number of rows, whatever n is.
expect_equal(nrow(recommend(model, "film", list(user = 1:2), n = 2^53, exclude = FALSE)), 80)
expect_equal(nrow(similar(model, "film", 1:2, n = 2^53)), 78)
bad(recommend(model, "film", list(user = 1, user = 2)), "mode user is given twice")
bad(recommend(model, TRUE), "mode must be the name or the number")
expect_equal(recommend(named, factor("film"), list(user = "u1"), n = 1), recommend(named, "film", list(user = "u1"), n = 1))
bad(evaluate(model, type = "ranking", mode = "film", by = "film"), "mode and by are both mode film")
bad(predict(model, ratings, threads = 1e6), "^threads is 1000000")

# Matrices.
half <- matrix(1, 40, 40, dimnames = list(paste0("f", 1:40), NULL))
bad(fit(names, matrices = list(film = coupled(half, "graph"))), "graph film has names of its rows or of its columns only")
bad(fit(ratings, matrices = list(film = fixture_matrix(), fixture_matrix())), "named by mode")
expect_equal(length(clusters(model, "film", k = 2, matrices = list())$information), 0)
bad(s3cmtf_tune(formula, ratings, ranges = list(rank = 1:2, rank = 3:4)), "option rank has two ranges")
bad(s3cmtf_tune(formula, ratings, trials = 1, rungs = 1e9), "^rungs = 1000000000: it must be a whole number from 1 to 20")
