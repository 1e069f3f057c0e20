source("helper.R")
ratings <- fixture_ratings()

# Options.
table <- s3cmtf_options()
expect_true(all(c("rank", "epochs", "algorithm", "seed") %in% table$name))
expect_equal(names(table), c("name", "type", "default", "min", "max", "choices", "help"))
expect_true("paper" %in% s3cmtf_presets())
expect_true(grepl("^[0-9]+[.][0-9]+[.][0-9]+$", s3cmtf_version()$version))
model <- small_fit(seed = 5, lambda_reg = 0.1, biases = FALSE)
options <- model_options(model)
expect_equal(options[c("rank", "epochs", "seed", "lambda_reg", "biases")],
  list(rank = 3L, epochs = 3L, seed = 5L, lambda_reg = 0.1, biases = FALSE))
expect_equal(options[c("algorithm", "lambda_m", "clip")], list(algorithm = "blocked", lambda_m = "auto", clip = TRUE))
lambda_bias <- model_options(small_fit())$lambda_bias
expect_equal(length(lambda_bias), 3)
expect_true(is.numeric(lambda_bias))
# Values of their types are options of another fit.
expect_identical(factors(s3cmtf(rating ~ user + film + month, ratings, options = options)), factors(model))
expect_identical(model_options(small_fit(seed = "18446744073709551615"))$seed, "18446744073709551615")
expect_identical(model_options(small_fit(seed = 2^40))$seed, 2^40)
expect_equal(model_options(s3cmtf(rating ~ user + film, ratings, preset = "paper", rank = c(4, 3), epochs = 1))$rank, 4:3)
expect_equal(model_options(small_fit(options = list(seed = 5)))$seed, 5L)
expect_equal(model_options(small_fit(options = list(seed = 5), seed = 6))$seed, 6L)
expect_error(small_fit(rnk = 2), pattern = "did you mean 'rank'", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(rating ~ user + film, ratings, rank = -1), class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(seed = NA), class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(preset = "none"), class = "s3cmtf_BAD_ARGUMENT")

# Printing and the record.
expect_stdout(print(model), "rank 3")
shown <- summary(model)
expect_equal(nrow(shown$epochs), 3)
expect_equal(shown$modes$rows, c(60, 40, 6))
expect_stdout(print(shown), "Call: s3cmtf\\(rating ~ user")

# Test and validation entries, also with names that the training data does not have.
named <- named_ratings()
train <- named[1:500, ]
test <- named[501:600, ]
model <- suppressMessages(small_fit(data = train, test = test, valid = test[1:50, ]))
expect_equal(as.numeric(summary(model)$record$test_rmse), evaluate(model, test)$clipped_rmse, tolerance = 1e-6)
expect_true(is.finite(as.numeric(summary(model)$record$valid_rmse)))
expect_true(is.finite(as.numeric(summary(small_fit(valid = 0.1))$record$valid_rmse)))
expect_equal(factors(suppressMessages(small_fit(data = train, test = as_coo_tensor(test)))), factors(small_fit(data = droplevels(train))))

# Weights.
weighted <- small_fit(weights = rep(1:2, 300), algorithm = "als")
expect_equal(as.data.frame(weighted$data)$weight, rep(c(1, 2), 300))
expect_equal(predict(s3cmtf(as_coo_tensor(ratings), weights = rep(1:2, 300), rank = 3, epochs = 3, algorithm = "als")), predict(weighted))
expect_error(small_fit(weights = 1:3), pattern = "3 weights for 600 entries", class = "s3cmtf_BAD_ARGUMENT")

# Checkpoint, resume and start from a model.
checkpoint <- scratch("fit.s3m")
stopped <- suppressMessages(small_fit(checkpoint = checkpoint))
expect_true(file.exists(checkpoint))
expect_identical(factors(small_fit(resume = checkpoint)), factors(stopped))
expect_error(s3cmtf(rating ~ user + film + month, ratings, rank = 2, resume = checkpoint), class = "s3cmtf_BAD_ARGUMENT")
expect_true(evaluate(small_fit(init = stopped))$rmse <= evaluate(stopped)$rmse + 0.1)
expect_warning(small_fit(data = named, init = stopped), "none in init; rows are matched by number", class = "s3cmtf_warning")
expect_error(small_fit(data = named, init = small_fit(data = named[600:1, ])), pattern = "other rows", class = "s3cmtf_BAD_ARGUMENT")

# Plans.
formula <- rating ~ user + film + month
genres <- list(film = fixture_matrix())
fitted_model <- small_fit(matrices = genres)
plan <- s3cmtf_plan(formula, ratings, matrices = genres, rank = 3, epochs = 3)
expect_identical(plan, model_plan(fitted_model))
expect_true(startsWith(plan, "{") && grepl("\"s3cmtf_plan\":1", plan, fixed = TRUE))
repeated <- s3cmtf(formula, ratings, matrices = genres, plan = plan)
expect_identical(factors(repeated), factors(fitted_model))
expect_identical(model_plan(repeated), plan)
expect_identical(factors(small_fit(matrices = genres, plan = plan)), factors(fitted_model))
settings <- list(algorithm = "gibbs", rank = 2, samples = 4)
plan_of_samples <- s3cmtf_plan(as_coo_tensor(ratings), options = settings)
expect_identical(factors(s3cmtf(formula, ratings, plan = plan_of_samples)), factors(s3cmtf(formula, ratings, options = settings)))
held_out <- s3cmtf_plan(formula, ratings, rank = 3, epochs = 3, valid = 0.1)
expect_identical(factors(s3cmtf(formula, ratings, plan = held_out)), factors(small_fit(valid = 0.1)))
expect_error(s3cmtf(formula, ratings[-1, ], matrices = genres, plan = plan), pattern = "other data", class = "s3cmtf_BAD_ARGUMENT")
expect_error(s3cmtf(formula, ratings, plan = plan), pattern = "there are 0", class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(matrices = genres, plan = plan, seed = 7), pattern = "seed is 7 here", class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(plan = "rank=3"), pattern = "not JSON", class = "s3cmtf_BAD_ARGUMENT")
expect_error(small_fit(plan = 3), pattern = "plan must be one string", class = "s3cmtf_BAD_ARGUMENT")

# Progress.
epochs <- numeric()
invisible(suppressMessages(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 20000, progress = function(state) {
  epochs <<- c(epochs, state$epoch)
  length(epochs) < 2
})))
expect_equal(length(epochs), 2)
expect_message(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 400, progress = "message"), "epoch")
expect_stdout(suppressMessages(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 2000, progress = "bar")), "%")
expect_error(small_fit(progress = "loud"), class = "s3cmtf_BAD_ARGUMENT")

# A progress function may use the package.
nested <- NULL
invisible(suppressMessages(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 20000, progress = function(state) {
  nested <<- small_fit()
  tryCatch(small_fit(rnk = 1), s3cmtf_error = function(condition) FALSE)
})))
expect_identical(factors(nested), factors(small_fit()))

# Errors of a progress function end the fit.
expect_error(s3cmtf(rating ~ user + film + month, ratings, rank = 3, epochs = 1e6, progress = function(state) stop("mine")), "mine")
