# Rows of several inputs are matched by name if both have names, otherwise by number.
source("helper.R")
names <- paste0("f", 1:40)
set.seed(1)
order <- sample(40)
data <- fixture_ratings()
train <- coo_tensor(data$user, data$film, data$month, values = data$rating, dims = c(60, 40, 6))
train$labels[[2]] <- names
some <- seq(1, 600, 7)
held_out <- coo_tensor(data$user[some], data$film[some], data$month[some], values = data$rating[some] + 0.25, dims = c(60, 40, 6))
held_out$labels[[2]] <- names
genres <- fixture_matrix()
rownames(genres) <- names
chain <- matrix(0, 40, 40, dimnames = list(names, names))
chain[cbind(1:38, 3:40)] <- 1

# The same entries with other row numbers, and their names, from a file with files of names beside it.
shuffled <- function(tensor, sides = 2) {
  columns <- lapply(1:length(tensor$modes), function(n) .Call(s3cmtf:::r_coo_indices, tensor$handle, n))
  labels <- tensor$labels
  for (n in sides) {
    columns[[n]] <- order[columns[[n]]]
    labels[[n]][order] <- tensor$labels[[n]]
  }
  other <- do.call(coo_tensor, c(columns, list(values = .Call(s3cmtf:::r_coo_values, tensor$handle), dims = dim(tensor))))
  other$labels <- labels
  path <- scratch("shuffled.coo")
  write_coo(other, path)
  open_coo(path)
}
coupled_with <- function(x = genres, graph = chain) {
  list(mode2 = list(coupled(x, "full", weight = 1), coupled(graph, "graph", weight = 0.1)))
}
fit <- function(matrices = NULL, of = train, ...) s3cmtf(of, matrices, rank = 3, epochs = 5, seed = 7, algorithm = "blocked", ...)
errors <- function(...) {
  found <- fit(..., progress = FALSE)
  unlist(summary(found)$record[c("train_rmse", "valid_rmse", "test_rmse")])
}
expect_silent(expected <- errors(coupled_with(), test = held_out, valid = held_out))
expect_equal(length(expected), 3)
as_numbers <- function(x) as.numeric(x)
for (matrices in list(coupled_with(x = shuffled(as_coo_tensor(genres, drop_zeros = TRUE), 1)), coupled_with(x = genres[40:1, ]),
  coupled_with(graph = shuffled(as_coo_tensor(chain, drop_zeros = TRUE), 1:2)), coupled_with(graph = chain[order, 40:1]))) {
  expect_silent(found <- errors(matrices, test = held_out, valid = held_out))
  expect_equal(as_numbers(found), as_numbers(expected), tolerance = 1e-5)
}
expect_silent(found <- errors(coupled_with(), test = shuffled(held_out), valid = held_out))
expect_equal(found, expected)
expect_silent(found <- errors(coupled_with(), test = held_out, valid = shuffled(held_out)))
expect_equal(found, expected)

# A model that was read from a file.
path <- scratch("model.s3m")
save_model(fit(coupled_with()), path)
model <- load_model(path)
other <- shuffled(held_out)
expect_silent(found <- predict(model, other))
expect_equal(found, predict(model, held_out))
expect_silent(found <- predict(model, other, unknown = "error"))
expect_silent(found <- evaluate(model, other))
expect_equal(found, evaluate(model, held_out))
ranking <- function(test, train) evaluate(model, test, "ranking", mode = "mode2", by = "mode1", train = train)
expect_silent(found <- ranking(other, shuffled(train)))
expect_equal(found, ranking(held_out, train))
expect_silent(found <- recommend(model, "mode2", list(mode1 = 3), exclude = shuffled(train)))
expect_equal(found, recommend(model, "mode2", list(mode1 = 3), exclude = train))
expect_silent(found <- clusters(model, "mode2", 2, matrices = genres[order, ])$information)
expect_equal(found, clusters(model, "mode2", 2, matrices = genres)$information)
new <- function(film) coo_tensor(rep(61, 9), film, rep(1, 9), values = 1:9)
expect_silent(folded <- fold_in(model, "mode1", new(names[9:1])))
numbered <- new(9:1)
numbered$labels[[2]] <- names
expect_equal(factors(folded, "mode1"), factors(fold_in(model, "mode1", numbered), "mode1"))

# Rows that only one side has.
more <- rbind(genres[3:4, ], new = c(1, 0))
unsized <- coo_tensor(data$user, factor(names[data$film], names), data$month, values = data$rating)
expect_message(extended <- fit(list(mode2 = coupled(more, "full", weight = 1)), unsized), "mode mode2: rows are matched by name: 2 in both the tensor and matrix mode2, 38 only in the tensor, 1 only in matrix mode2 \\(such as new\\), appended to the mode", class = "s3cmtf_matched_rows")
expect_true("new" %in% rownames(factors(extended, "mode2")))
part <- coo_tensor(1:2, c("f3", "new"), 1:2, values = 1:2)
report <- "1 in both the (tensor|model) and .*, 39 only in the .*, 1 only in .* \\(such as new\\), unseen: they count as the mean row"
expect_message(fit(test = part), report, class = "s3cmtf_matched_rows")
expect_message(predicted <- predict(model, part), report, class = "s3cmtf_matched_rows")
expect_equal(predicted[2], predict(model, list(2, "nobody", 2)))
expect_message(predict(model, data.frame(mode1 = 1:2, mode2 = c("f3", "new"), mode3 = 1)), report, class = "s3cmtf_matched_rows")

# No name in common.
none <- coo_tensor(1:2, c("x", "y"), 1:2, values = 1:2)
other_names <- matrix(1, 2, 2, dimnames = list(c("x", "y"), c("x", "y")))
message_of <- function(known, what) paste0("mode mode2: ", known, " and ", what, " have no name in common; names are such as f1 in ", known, " and x in ", what)
expect_error(fit(list(mode2 = coupled(other_names, "full", weight = 1))), pattern = message_of("the tensor", "matrix mode2"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(list(mode2 = coupled(other_names, "graph", weight = 1))), pattern = message_of("the tensor", "matrix mode2"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(test = none), pattern = message_of("the tensor", "test"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(valid = none), pattern = message_of("the tensor", "valid"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf_tune(train, valid = none), pattern = message_of("the tensor", "valid"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(predict(model, none), pattern = message_of("the model", "newdata"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(evaluate(model, none), pattern = message_of("the model", "data"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(ranking(train, none), pattern = message_of("the model", "train"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(recommend(model, "mode2", list(mode1 = 1), exclude = none), pattern = message_of("the model", "exclude"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fold_in(model, "mode1", none), pattern = message_of("the model", "newdata"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(clusters(model, "mode2", 2, matrices = other_names), pattern = message_of("the model", "matrix matrix"), class = "s3cmtf_BAD_ARGUMENT")

# Names on one side.
bare <- coo_tensor(data$user, data$film, data$month, values = data$rating, dims = c(60, 40, 6))
by_number <- function(named, other) paste("mode mode2: there are names in", named, "and none in", paste0(other, "; rows are matched by number"))
expect_warning(one <- fit(list(mode2 = coupled(unname(genres), "full", weight = 1))), by_number("the tensor", "matrix mode2"), class = "s3cmtf_warning")
expect_warning(two <- fit(list(mode2 = coupled(genres, "full", weight = 1)), bare), by_number("matrix mode2", "the tensor"), class = "s3cmtf_warning")
both <- fit(list(mode2 = coupled(unname(genres), "full", weight = 1)), bare)
expect_equal(factors(two), factors(both))
expect_equal(unname(factors(one, "mode2")), unname(factors(both, "mode2")))
expect_warning(fit(test = bare), by_number("the tensor", "test"), class = "s3cmtf_warning")
expect_warning(fit(of = bare, valid = train), by_number("valid", "the tensor"), class = "s3cmtf_warning")
expect_warning(fit(init = both), by_number("the tensor", "init"), class = "s3cmtf_warning")
expect_warning(predict(model, bare), by_number("the model", "newdata"), class = "s3cmtf_warning")
expect_warning(evaluate(both, train), by_number("data", "the model"), class = "s3cmtf_warning")

# No names.
expect_error(fit(list(mode2 = coupled(diag(50), "full", weight = 1)), bare), class = "s3cmtf_error")

# A name of two rows.
twice <- replace(names, 6, "f3")
file <- function(names) {
  path <- scratch("ratings.coo")
  write_coo(train, path)
  writeLines(c("index\tname", paste0(1:40, "\t", names)), sub("coo$", "mode2.tsv", path))
  open_coo(path)
}
expect_silent(fit(of = file(twice), test = file(twice), progress = FALSE))
fault <- "rows 3 and 6 are both called f3"
expect_error(fit(of = file(twice), test = file(rev(twice))), pattern = paste("cannot be matched by name, because in the tensor", fault), class = "s3cmtf_BAD_ARGUMENT")
expect_error(fit(test = file(twice)), pattern = paste("mode mode2: rows of the tensor and test cannot be matched by name, because in test", fault), class = "s3cmtf_BAD_ARGUMENT")
expect_error(evaluate(fit(of = file(twice)), train), pattern = paste("because in the model", fault), class = "s3cmtf_BAD_ARGUMENT")
