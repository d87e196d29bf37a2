# Reads the data written by glmnet.py, then for each line "thresh" on standard input fits the whole path of the
# ridge-penalised logistic regression, writes its coefficients (d x n_lambda, float64) and answers with the
# processor seconds of the call alone and the number of values of lambda that were fitted.
suppressPackageStartupMessages({library(Matrix); library(glmnet)})
glmnet.control(fdev = 0, devmax = 1)  # do not leave the path early
folder <- commandArgs(trailingOnly = TRUE)[1]
numbers <- function(name, what = "double") {
  file <- file.path(folder, name)
  readBin(file, what, n = file.size(file) / if (what == "double") 8 else 4)
}
shape <- numbers("shape", "integer")
x <- if (file.exists(file.path(folder, "indptr"))) {
  new("dgCMatrix", i = numbers("indices", "integer"), p = numbers("indptr", "integer"), x = numbers("X"), Dim = shape)
} else matrix(numbers("X"), shape[1], shape[2])
y <- factor(numbers("y"), levels = c(-1, 1))  # glmnet models the second level
lambda <- numbers("lambda")
cat("ready", as.character(packageVersion("glmnet")), "\n")
orders <- file("stdin", "r")
while (length(order <- readLines(orders, 1)) > 0) {
  began <- proc.time()
  fit <- glmnet(x, y, family = "binomial", alpha = 0, lambda = lambda, standardize = FALSE, intercept = FALSE,
                thresh = as.numeric(order), maxit = 1e8)
  took <- proc.time() - began
  writeBin(as.vector(as.matrix(fit$beta)), file.path(folder, "beta"))
  cat(took[["user.self"]] + took[["sys.self"]], ncol(fit$beta), "\n")
}
