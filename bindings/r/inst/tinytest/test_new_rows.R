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
expect_error(fold_in(folded, "user", entries), pattern = "already", class = "s3cmtf_BAD_ARGUMENT")
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
