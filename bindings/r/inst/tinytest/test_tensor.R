source("helper.R")

# From vectors.
tensor <- coo_tensor(user = c(1L, 2L, 2L), film = c("a", "b", "a"), month = factor(c("x", "y", "y"), levels = c("y", "x", "z")),
  values = c(5, 3, 4))
expect_inherits(tensor, "coo_tensor")
expect_equal(dim(tensor), c(2L, 2L, 3L))
frame <- as.data.frame(tensor)
expect_equal(names(frame), c("user", "film", "month", "value"))
expect_equal(frame$user, c(1L, 2L, 2L))
expect_equal(as.character(frame$film), c("a", "b", "a"))
expect_equal(levels(frame$month), c("y", "x", "z"))
expect_equal(frame$value, c(5, 3, 4))
expect_equal(summary(tensor)$modes$rows_with_entries, c(2, 2, 2))
expect_equal(summary(tensor)$mean, 4)
expect_stdout(print(tensor), "3 entries")
expect_stdout(print(summary(tensor)), "values from 3 to 5")
expect_equal(as.data.frame(coo_tensor(1:2, 1:2))$value, c(1, 1))
expect_equal(coo_tensor(1:2, 1:2)$modes, c("mode1", "mode2"))
expect_equal(dim(coo_tensor(1:2, 1:2, values = 1:2, dims = c(5, 6))), 5:6)
expect_equal(as.data.frame(coo_tensor(1:2, 1:2, weights = c(1, 2)))$weight, c(1, 2))
expect_equal(as.data.frame(coo_tensor(c(TRUE, FALSE), 1:2))$mode1, factor(c("TRUE", "FALSE"), levels = c("TRUE", "FALSE")))
# A compact sequence of R and indices in doubles above the range of integers.
expect_equal(as.data.frame(coo_tensor(1:1000, 1000:1))$mode2, 1000:1)
expect_equal(as.data.frame(coo_tensor(c(1, 4e9), 1:2))$mode1, c(1, 4e9))

# From data frames and formulas.
ratings <- fixture_ratings()
expect_equal(as.data.frame(as_coo_tensor(ratings))[1:3], ratings[1:3])
expect_equal(as.data.frame(as_coo_tensor(rating ~ user + film, ratings))$rating, ratings$rating)
expect_equal(as_coo_tensor(rating ~ ., ratings)$modes, c("user", "film", "month"))
expect_equal(as_coo_tensor(log(rating) ~ factor(user) + film, ratings)$labels[[1]], as.character(1:60))
expect_equal(as.data.frame(as_coo_tensor(rating ~ user + film, ratings, weights = month))$weight, as.numeric(ratings$month))
expect_equal(as.data.frame(as_coo_tensor(ratings, value = "rating", weights = "month"))$weight, as.numeric(ratings$month))
expect_equal(as_coo_tensor(~ user + film, ratings)$modes, c("user", "film"))

# From dense matrices and arrays: NA is not observed.
dense <- matrix(c(1, NA, 0, 4), 2, dimnames = list(c("p", "q"), NULL))
expect_equal(as.data.frame(as_coo_tensor(dense))$value, c(1, 0, 4))
expect_equal(as.data.frame(as_coo_tensor(dense, drop_zeros = TRUE))$value, c(1, 4))
expect_equal(as_coo_tensor(dense)$labels, list(c("p", "q"), NULL))
cube <- array(c(1, NA, 3, 4, 5, 6, 7, 8), c(2, 2, 2))
expect_equal(dim(as_coo_tensor(cube)), c(2L, 2L, 2L))
expect_equal(as.data.frame(as_coo_tensor(cube))$value, c(1, 3:8))

# From sparse matrices.
if (requireNamespace("Matrix", quietly = TRUE)) {
  sparse <- Matrix::sparseMatrix(i = c(1, 3, 2, 2), j = c(1, 1, 2, 2), x = c(2, 5, 1, 3), dims = c(3, 4))
  forms <- list(
    sparse, methods::as(sparse, "TsparseMatrix"), methods::as(sparse, "RsparseMatrix"),
    Matrix::sparseMatrix(i = c(1, 3, 2, 2), j = c(1, 1, 2, 2), x = c(2, 5, 1, 3), dims = c(3, 4), repr = "T")
  )
  for (form in forms) {
    expect_equal(as.data.frame(as_coo_tensor(form))$value, c(2, 5, 4))
    expect_equal(dim(as_coo_tensor(form)), 3:4)
  }
  expect_equal(as.data.frame(as_coo_tensor(methods::as(sparse, "nMatrix")))$value, c(1, 1, 1))
  expect_equal(as.data.frame(as_coo_tensor(methods::as(sparse, "lMatrix")))$value, c(1, 1, 1))
  symmetric <- Matrix::sparseMatrix(i = 1, j = 2, x = 7, dims = c(2, 2), symmetric = TRUE)
  expect_equal(as.data.frame(as_coo_tensor(symmetric))$value, c(7, 7))
  expect_equal(as.data.frame(as_coo_tensor(Matrix::Diagonal(3)))$value, c(1, 1, 1))
  expect_equal(nrow(as.data.frame(as_coo_tensor(Matrix::Matrix(matrix(1:4, 2))))), 4)
  dimnames(sparse) <- list(letters[1:3], LETTERS[1:4])
  expect_equal(as_coo_tensor(sparse)$labels, list(letters[1:3], LETTERS[1:4]))
}

# Any of these can be fitted.
if (requireNamespace("Matrix", quietly = TRUE)) {
  two <- s3cmtf(Matrix::sparseMatrix(i = ratings$user, j = ratings$film, x = ratings$rating / 2), rank = 2, epochs = 2)
  expect_equal(two$modes, c("row", "column"))
  expect_equal(length(predict(two, as.matrix(ratings[1:5, c("user", "film")]))), 5)
}
expect_equal(s3cmtf(cube, rank = 1, epochs = 2)$modes, c("mode1", "mode2", "mode3"))

close(tensor)
expect_error(dim(tensor), class = "s3cmtf_BAD_STATE")
expect_stdout(print(tensor), "closed")
