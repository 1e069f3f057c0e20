source("helper.R")
ratings <- fixture_ratings()
changed <- function(column, value, row = 3) {
  ratings[[column]][row] <- value
  ratings
}
fit <- function(data) s3cmtf(rating ~ user + film + month, data, rank = 2, epochs = 1)

# Every condition has the classes of the status, of the package and of errors.
condition <- tryCatch(fit(changed("rating", NaN)), error = identity)
expect_equal(class(condition), c("s3cmtf_BAD_ENTRY", "s3cmtf_error", "error", "condition"))

# Values.
for (value in list(NaN, NA_real_, Inf)) expect_error(fit(changed("rating", value)), pattern = "entry 3", class = "s3cmtf_BAD_ENTRY")
expect_error(fit(transform(ratings, rating = as.character(rating))), pattern = "must be numbers", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(transform(ratings, rating = factor(rating))), pattern = "must be numbers", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(coo_tensor(1:2, 1:2, values = c(1, 2), weights = c(1, -1))), pattern = "weight -1", class = "s3cmtf_BAD_ENTRY")

# Indices.
expect_error(fit(changed("user", NA)), pattern = "entry 3: the index of mode user is NA", class = "s3cmtf_BAD_ENTRY")
expect_error(fit(changed("user", 0L)), pattern = "entry 3: the index of mode user is 0", class = "s3cmtf_BAD_ENTRY")
expect_error(fit(changed("user", 1.5)), pattern = "is 1.5", class = "s3cmtf_BAD_ENTRY")
expect_error(fit(changed("user", 1e10)), pattern = "integer from 1", class = "s3cmtf_BAD_ENTRY")
expect_error(fit(changed("user", Inf)), class = "s3cmtf_BAD_ENTRY")
expect_error(fit(transform(ratings, month = as.Date("2024-01-01") + month)), pattern = "format\\(month", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(transform(ratings, film = complex(600))), class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(c(1, 5), 1:2, dims = c(4, 2)), pattern = "entry 2: the index of mode mode1 is 5", class = "s3cmtf_BAD_ENTRY")
expect_error(coo_tensor(c("a", "b"), 1:2, dims = c(1, 2)), class = "s3cmtf_error")
missing_name <- transform(ratings, film = paste0("f", film))
missing_name$film[7] <- NA
expect_error(fit(missing_name), pattern = "entry 7: the index of mode film is NA", class = "s3cmtf_BAD_ENTRY")

# Factors with unused levels: the rows exist and are predicted from the mean row.
levels <- transform(ratings, film = factor(film, levels = 0:41))
expect_message(model <- fit(levels), "mode film: 2 of 42 rows have no entries \\(0, 41\\)")
expect_true(is.finite(predict(model, data.frame(user = 1L, film = "41", month = 1L))))
expect_error(recommend(model, "user", list(film = "41")), class = "s3cmtf_BAD_ARGUMENT")
expect_silent(fit(droplevels(levels)))

# Shapes.
expect_error(coo_tensor(), class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(1:3, 1:2), pattern = "mode mode2 has 2 indices", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(1:3, 1:3, values = 1:2), pattern = "2 values for 3 entries", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(1:3, 1:3, weights = 1), pattern = "1 weights for 3 entries", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(1:3, 1:3, dims = 3), pattern = "dims has 1 numbers", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(a = 1, a = 1), pattern = "two modes are named a", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(integer(), integer()), class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(coo_tensor(1:3, values = 1:3)), class = "s3cmtf_error")
expect_error(predict(model, matrix(1L, 2, 2)), pattern = "2 columns", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, ratings["user"]), pattern = "no column film", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, 1:3), class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, coo_tensor(1:2, 1:2)), pattern = "2 modes", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, ratings, nosuch = 1), pattern = "nosuch", class = "s3cmtf_BAD_ARGUMENT")
expect_error(evaluate(model, 1), class = "s3cmtf_BAD_ARGUMENT")
expect_error(evaluate(model, ratings[0, ]), pattern = "data has no entries", class = "s3cmtf_BAD_ARGUMENT")

expect_error(as_coo_tensor(matrix(1, 2, 2, dimnames = list(c("a", "a"), NULL))), pattern = "^two rows are named a", class = "s3cmtf_BAD_ARGUMENT")
twice <- matrix(1, 60, 2, dimnames = list(NULL, c("b", "b")))
expect_error(as_coo_tensor(twice), pattern = "^two columns are named b", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(twice), pattern = "^matrix twice: two columns are named b", class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(matrices = list(user = twice)), pattern = "^matrix user: two columns are named b", class = "s3cmtf_BAD_ARGUMENT")
expect_error(as_coo_tensor(array(1, c(1, 2, 1), list(NULL, c("a", "a"), NULL))), pattern = "^two slices of dimension 2 are named a", class = "s3cmtf_BAD_ARGUMENT")
for (kind in c("auto", "observed", "full", "graph")) {
  expect_error(coupled(matrix(NA_real_, 3, 3), kind), pattern = "the matrix has no known cell", class = "s3cmtf_BAD_ARGUMENT")
}
expect_inherits(coupled(matrix(0, 3, 3), "full"), "s3cmtf_coupled")
expect_inherits(coupled(matrix(c(1, NA), 2, 2)), "s3cmtf_coupled")
expect_error(as_coo_tensor(matrix(1, 2, 2, dimnames = list(c("a", NA), NULL))), class = "s3cmtf_BAD_ARGUMENT")
expect_error(recommend(model, "user", n = 2.5), class = "s3cmtf_BAD_ARGUMENT")
expect_error(recommend(model, "user", n = c(1, 2)), class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, ratings, threads = -1), class = "s3cmtf_BAD_ARGUMENT")
expect_error(coo_tensor(1:2, 1:2, dims = c(-1, 2)), class = "s3cmtf_BAD_ARGUMENT")
expect_error(open_coo(NA_character_), class = "s3cmtf_BAD_ARGUMENT")
expect_error(open_coo(c("a", "b")), class = "s3cmtf_BAD_ARGUMENT")

# Messages name the argument.
expect_error(recommend(model, "user", n = 2.5), pattern = "n must be one whole number", class = "s3cmtf_BAD_ARGUMENT")
expect_error(recommend(model, "user", n = Inf), pattern = "n must be one whole number", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, ratings, threads = 1.5), pattern = "threads must be", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, ratings, quantiles = c(0.5, NA)), pattern = "quantiles must be", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, matrix("a", 1, 3)), pattern = "no names", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(matrix(1, 2, 2), weight = Inf), pattern = "weight must be one finite number", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(matrix(1, 2, 2), penalty = -1), pattern = "penalty must be one finite number", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(matrix(1, 2, 2), zeros = 1.5), pattern = "zeros must be one whole number", class = "s3cmtf_BAD_ARGUMENT")
expect_error(clusters(model, "user", k = 1.5), pattern = "k must be one whole number", class = "s3cmtf_BAD_ARGUMENT")
for (dims in list(c(1.5, 2), c(NA, 2), c(Inf, 2))) {
  expect_error(coo_tensor(1, 1, dims = dims), pattern = "dims must be whole numbers", class = "s3cmtf_BAD_ARGUMENT")
}
expect_error(s3cmtf_tune(rating ~ user + film, ratings, valid = 2), pattern = "valid must be", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fold_in(model, "user"), pattern = "newdata or matrices", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fold_in(model, "user", matrices = list(user = 1)), pattern = "it has no matrices", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film, ratings, init = model), pattern = "init has 3 modes", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film, ratings, keep_data = 1), pattern = "keep_data must be", class = "s3cmtf_BAD_ARGUMENT")

# Formulas.
expect_error(s3cmtf(rating ~ user * film, ratings), pattern = "separated by \\+", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + nosuch, ratings), pattern = "no column nosuch", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + user, ratings), pattern = "twice", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film, ratings, 5), class = "s3cmtf_BAD_ARGUMENT")

expect_error(s3cmtf(rating ~ user + film, data = 1:3), pattern = "class integer", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf_tune(rating ~ user + film, data = "ratings"), pattern = "class character", class = "s3cmtf_BAD_ARGUMENT")
expect_error(as_coo_tensor(rating ~ user, matrix(1, 2, 2)), pattern = "class matrix", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film, ratings, weights = nope), pattern = "nope", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf_tune(rating ~ user + film, ratings, weights = nope), pattern = "nope", class = "s3cmtf_BAD_ARGUMENT")
expect_error(as_coo_tensor(rating ~ user + film, ratings, weights = nope), pattern = "nope", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + nofunction(film), ratings), pattern = "nofunction", class = "s3cmtf_BAD_ARGUMENT")

# Choices.
expect_error(coupled(matrix(1, 2, 2), kind = "foo"), pattern = "kind must be one of \"auto\"", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, interval = "confidence"), pattern = "\"prediction\"", class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, unknown = NA), pattern = "unknown must be one of", class = "s3cmtf_BAD_ARGUMENT")
expect_error(evaluate(model, type = 1), pattern = "type must be one of", class = "s3cmtf_BAD_ARGUMENT")
expect_error(clusters(model, "user", space = c("rows", "gap")), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fix_coo(as_coo_tensor(ratings), "x.coo", keep = "best"), class = "s3cmtf_BAD_ARGUMENT")
expect_equal(coupled(matrix(1, 2, 2), kind = "obs")$kind, "observed")

# Objects of other classes.
expect_error(s3cmtf(sum), class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(NULL), class = "s3cmtf_BAD_ARGUMENT")
expect_error(factors(ratings), class = "s3cmtf_BAD_ARGUMENT")
expect_error(write_coo(ratings, "x.coo"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(factors(model, "actor"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(factors(model, 4), class = "s3cmtf_BAD_ARGUMENT")
swapped <- model
swapped$handle <- model$data$handle
expect_error(factors(swapped), pattern = "not a model", class = "s3cmtf_BAD_ARGUMENT")
swapped$handle <- 1
expect_error(factors(swapped), class = "s3cmtf_BAD_ARGUMENT")
