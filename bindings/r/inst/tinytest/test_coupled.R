source("helper.R")
genres <- fixture_matrix()
rownames(genres) <- paste0("f", 1:40)
ratings <- named_ratings()
fit <- function(matrices, ...) s3cmtf(rating ~ user + film + month, ratings, matrices, rank = 3, epochs = 3, ...)
reference <- fit(list(film = coupled(genres, "full", weight = 1)))

# Rows are matched by name, whatever their order and class.
expect_equal(factors(fit(list(film = coupled(genres[40:1, ], "full", weight = 1)))), factors(reference))
listed <- data.frame(film = rownames(genres)[row(genres)[genres == 1]], genre = colnames(genres)[col(genres)[genres == 1]])
expect_equal(unname(factors(fit(list(film = coupled(listed, "full", weight = 1))))), unname(factors(reference)), tolerance = 1e-4)
expect_equal(colnames(genres), rownames(coef(reference)$matrices$film$factor))
if (requireNamespace("Matrix", quietly = TRUE)) {
  sparse <- Matrix::Matrix(genres, sparse = TRUE)
  expect_equal(factors(fit(list(film = coupled(sparse, "full", weight = 1)))), factors(reference))
}
# Without row names the rows are those of the factor levels.
ordered <- transform(ratings, film = factor(film, levels = rownames(genres)))
positional <- s3cmtf(rating ~ user + film + month, ordered, list(film = coupled(unname(genres), "full", weight = 1)), rank = 3, epochs = 3)
named <- s3cmtf(rating ~ user + film + month, ordered, list(film = coupled(genres, "full", weight = 1)), rank = 3, epochs = 3)
expect_equal(factors(positional), factors(named))

# Every kind, several matrices of one mode and graphs.
chain <- matrix(0, 6, 6)
chain[cbind(1:5, 2:6)] <- 1
prices <- matrix(c(1:39, NA), 40, 1, dimnames = list(rownames(genres), "price"))
model <- fit(list(
  film = coupled(genres, "sampled", zeros = 1, weight = 0.5), film = coupled(prices, "observed", weight = 0.01, penalty = 2),
  user = matrix(rnorm(60), 60), month = coupled(chain, "graph", weight = 2)
))
shown <- summary(model)$matrices
expect_equal(shown$matrix, c("film", "film.1", "user", "month"))
expect_equal(shown$kind, c("sampled", "observed", "observed", "graph"))
expect_equal(shown$weight[c(1, 2, 4)], c(0.5, 0.01, 2))
expect_null(coef(model)$matrices$month)
expect_equal(dim(coef(model)$matrices$film$factor), c(2L, 3L))
expect_stdout(print(model), "graph, weight 2")
expect_equal(summary(fit(list(film = list(genres, prices))))$matrices$matrix, c("film", "film.1"))
expect_stdout(print(coupled(genres, "full", weight = 2)), "kind full, weight 2")

# Rows that occur only in the matrix become rows of the mode.
more <- rbind(genres, new = c(1, 0))
extended <- fit(list(film = coupled(more, "full", weight = 1)))
expect_true("new" %in% rownames(factors(extended, "film")))
cells <- data.frame(user = c("u1", "u2"), film = "new", month = 1)
expect_true(diff(predict(extended, cells)) != 0)

# A matrix of other rows.
others <- genres
rownames(others) <- paste("film", 1:40)
expect_error(fit(list(film = others)), pattern = "mode film: the tensor and matrix film have no name in common; .* f1 in the tensor and film 1 in matrix film", class = "s3cmtf_BAD_ARGUMENT")
graph <- matrix(1, 2, 2, dimnames = list(c("a", "b"), c("a", "b")))
expect_error(fit(list(film = coupled(graph, "graph", weight = 1))), pattern = "no name in common", class = "s3cmtf_BAD_ARGUMENT")
expect_message(fit(list(film = coupled(rbind(others, genres[1, , drop = FALSE]), "full", weight = 1))), "1 in both the tensor and matrix film, 39 only in the tensor, 40 only in matrix film \\(such as film 1\\), appended to the mode", class = "s3cmtf_matched_rows")

# Row names of a mode with row numbers.
numbered <- fixture_ratings()
rownames(genres) <- 1:40
expect_silent(s3cmtf(rating ~ user + film + month, numbered, list(film = genres[40:1, ]), rank = 3, epochs = 2))
rownames(genres) <- paste0("f", 1:40)
expect_warning(s3cmtf(rating ~ user + film + month, numbered, list(film = genres), rank = 3, epochs = 2), "names in matrix film and none in the tensor; rows are matched by number", class = "s3cmtf_warning")

# Row numbers as names of some rows, also of a list of cells.
expect_silent(s3cmtf(rating ~ user + film + month, numbered, list(film = matrix(1, 2, 2, dimnames = list(c(7, 3), NULL))), rank = 3, epochs = 1))
cells <- data.frame(film = c("7", "3"), genre = "a")
expect_silent(s3cmtf(rating ~ user + film + month, numbered, list(film = coupled(cells, "full", weight = 1)), rank = 3, epochs = 1))
far <- matrix(1, 1, 2, dimnames = list("5e9", NULL))
expect_warning(s3cmtf(rating ~ user + film + month, numbered, list(film = coupled(far, "full", weight = 1)), rank = 3, epochs = 1), "matched by number", class = "s3cmtf_warning")

# Wrong shapes.
short <- "matrix film has 30 rows, but mode film has 40; give it one row for each row of the mode"
expect_error(fit(list(film = unname(genres[1:30, ]))), pattern = short, class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film + month, numbered, list(film = unname(genres[1:30, ]))), pattern = short, class = "s3cmtf_BAD_ARGUMENT")
expect_silent(s3cmtf(rating ~ user + film + month, numbered, list(film = data.frame(film = 1:30, genre = "a")), rank = 3, epochs = 1))
expect_error(fit(list(actor = genres)), pattern = "no mode actor", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(genres), pattern = "named by mode", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(list(genres)), pattern = "named by mode", class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(list(film = unname(rbind(genres, genres)))), pattern = "80 rows without names", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(array(1, c(2, 2, 2))), pattern = "2 modes", class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled(genres, weight = 0), class = "s3cmtf_BAD_ARGUMENT")
expect_error(coupled("a", "b"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(list(month = coupled(matrix(1, 6, 5), "graph"))), class = "s3cmtf_error")
