source("helper.R")
genres <- fixture_matrix()
rownames(genres) <- paste0("f", 1:40)
ratings <- named_ratings()
model <- s3cmtf(rating ~ user + film + month, ratings, list(film = coupled(genres, "full", weight = 1)), rank = 3, epochs = 20)

entries <- data.frame(user = "carla", film = c("f1", "f2", "f3", "f4"), month = 1, rating = c(5, 2, 5, 2))
folded <- fold_in(model, "user", entries)
expect_equal(folded$added, 1)
expect_true(all(abs(predict(folded, entries) - entries$rating) < 0.5))
expect_equal(predict(folded, ratings), predict(model, ratings))
liked <- recommend(folded, "film", list(user = "carla"), n = 3, exclude = entries)$film
expect_true(all(as.integer(sub("f", "", liked)) %% 2 == 1))
expect_error(fold_in(folded, "user", entries), pattern = "row carla of mode user is in the model already, from 4 entries; leave it out, or replace it with replace = TRUE", class = "s3cmtf_BAD_ARGUMENT")
expect_equal(fold_in(folded, "user", entries, replace = TRUE)$replaced, 1)
expect_equal(predict(fold_in(model, "user", as_coo_tensor(entries)), entries), predict(folded, entries))

# A film by its genres; columns that the fit did not have are ignored.
described <- data.frame(film = "new", genre = c("even", "unheard"))
by_matrix <- fold_in(model, "film", matrices = list(film = described))
cells <- data.frame(user = c("u1", "u2"), film = "new", month = 1)
expect_equal(round(predict(by_matrix, cells)), c(5, 2))
expect_error(fold_in(model, "film", matrices = list(actor = described)), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fold_in(model, "film", matrices = described), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fold_in(model, "film"), class = "s3cmtf_error")

# Rows by number.
numbered <- small_fit()
expect_equal(fold_in(numbered, "user", data.frame(user = 70L, film = 1:3, month = 1L, rating = 4))$added, 1)
expect_equal(fold_in(numbered, "user", data.frame(user = 4e9, film = 1:3, month = 1L, rating = 4))$added, 1)
expect_error(fold_in(numbered, "user", fixture_ratings()[11:13, ]), pattern = "row 2 of mode user is in the model already, from 10 entries", class = "s3cmtf_BAD_ARGUMENT")
for (row in c(0, -1, 1.5, 2^32, NA)) {
  wrong <- data.frame(user = row, film = 1:3, month = 1L, rating = 4)
  expect_error(fold_in(numbered, "user", wrong), pattern = "entry 1: the index of mode user", class = "s3cmtf_BAD_ENTRY")
}
# Rows of a mode with names need names.
expect_error(fold_in(model, "user", coo_tensor(70L, 1L, 1L, values = 4)), pattern = "row 70 of mode user has no name", class = "s3cmtf_BAD_ARGUMENT")
# Rows of other modes that the model does not have.
expect_warning(fold_in(numbered, "user", data.frame(user = 70L, film = c(1L, 99L), month = 1L, rating = 4)), "in 1 entry the row of mode film is not in the model .* are 1 to 40", class = "s3cmtf_warning")
expect_message(fold_in(model, "user", transform(entries, film = c("f1", "f2", "g", "h"))), "2 only in newdata \\(such as g\\), unseen: they count as the mean row", class = "s3cmtf_matched_rows")
# Matrices of other modes, and graphs.
expect_error(fold_in(model, "user", matrices = list(film = described)), pattern = "matrix film describes the rows of mode film, not of mode user", class = "s3cmtf_BAD_ARGUMENT")
graph <- s3cmtf(rating ~ user + film + month, fixture_ratings(), list(month = coupled(diag(6)[, c(2:6, 1)], "graph", weight = 1)), rank = 3, epochs = 1)
expect_error(fold_in(graph, "month", matrices = list(month = matrix(1, 7, 7))), pattern = "matrix month is a graph", class = "s3cmtf_BAD_ARGUMENT")
