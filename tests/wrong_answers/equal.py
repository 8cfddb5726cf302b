"""Near misses that a check lets through because, on the inputs that a task allows, they are the answer: of each
exercise, patterns of their sentences and the reason.
"""

SIGN = "sign|negative values|between 0 and 1"
EQUAL = {
    "share_restored": [
        ("difference between what is computed from clean and .* is lost", "the clean run likes the right answer more")
    ],
    "recalled": [("the first entry is 0", "few pairs are recalled, and in these draws the first is not")],
    "numbers_carried": [("last row of changes", "nudges of the last position are not looked at")],
    "low_rank": [
        ("stands where the number of entries", "the number of values is near 8, and its share is cut to a whole number")
    ],
    "share_of_logits": [
        (SIGN, "the stream's variance is small, so that the norm's eps shows, and the parts' means are above 0")
    ],
    "logit_lens": [(SIGN, "streams are small, and so is their variance")],
    "ppmi": [
        ("transposed|first axis|but one axis|symmetric", "counts are symmetric"),
        (f"{SIGN}|rounded", "counts and shares are not negative, shares not above 1, and counts are whole"),
    ],
    "shift_scores": [("brought to length 1", "the rows have length 1")],
    "rewrite": [("brought to length 1", "the keys have length 1")],
    "double": [("brought to length 1", "the rows have length 1")],
    "induction_layers": [("brought to length 1", "the rows have length 1")],
    "lookup": [("brought to length 1", "the rows have length 1")],
    "induction_score": [
        (SIGN, "weights are shares: not negative, not above 1"),
        ("divided by its sum along its fourth axis", "the weights of a query have the sum 1"),
        ("is hidden", "no query looks ahead"),
        ("the smaller of", "of a share and a 0 or 1 the smaller is the product"),
    ],
    "adam_step": [(SIGN, "v is a mean of squares: not negative, and drawn small")],
    "rest": [
        (SIGN, "losses are not negative"),
        ("stands where 0 belongs", "there is a stretch that is longer than the number that the maximum starts with"),
    ],
    "signal": [(SIGN, "counts are not negative, and the length of a mean of a few is below 1")],
    "bits": [(SIGN, "p is a share: not negative, not above 1; nor is the entropy of a fact, in bits")],
    "place_loss": [
        (SIGN, "an order has no negative entry and none above 1; nor is a loss negative"),
        (
            "divided by its sum along (its third|its second|the third|the second) axis",
            "the rows of an order have the sum 1",
        ),
    ],
    "flow_step": [
        ("brought (to length 1|back to the length)", "tokens have length 1"),
        ("done twice", "what is tangent stays so"),
        ("diagonal", "what a token gives itself lies along it, and is projected out"),
        ("between 0 and 1", "an inner product of unit vectors"),
    ],
    "hopfield_sweep": [
        ("brought to length 1|1 over|only the sign|rounded", "states are +1 or -1, and all between is whole"),
        (
            "1 is (added to|taken from) (what is computed from states|the product of states)",
            "fields are odd, so that 1 changes no sign",
        ),
    ],
    "chance_right": [(SIGN, "variances are not negative, and drawn below 1")],
    "logit_variance": [(f"{SIGN}|rounded", "counts are whole, and not negative")],
    "saw_gradient": [(SIGN, "counts are not negative")],
    "memory_gradient": [(f"{SIGN}|by (its|the) sum", "p is a distribution: not negative, of sum 1")],
    "first_step": [("between 0 and 1", "means of few inputs are small")],
    "cubic_memory": [("brought to length 1", "tokens have length 1")],
    "off_hull": [("brought to length 1", "directions have length 1")],
    "constraint_rows": [(f"{SIGN}|by the sum of p", "p is a row of a softmax: positive, of sum 1")],
    "sum_by_margin": [("softmax of (the|what)", "a second softmax leaves the rows in the same order of sharpness")],
    "flip_slope": [
        (f"{SIGN}|divided by its sum", "lengths are positive, and a factor of all of them leaves the slope as it is")
    ],
    "explained": [("negative|sign|symmetric|transposed", "G is a Gram matrix: symmetric, and no energy is negative")],
    "gd_closed_form": [
        ("transposed|symmetric", "S is symmetric"),
        (
            "to the power of steps is lost|^(what is computed from steps, lr and S|lr times .*) loses|"
            "^negative values of (what is computed from steps, lr and S|lr times)|is lost, and likewise elsewhere",
            "eigenvalues are positive, and so is a share: no step is longer than 2 / lambda",
        ),
    ],
    "newton_step": [("transposed|symmetric", "S is symmetric")],
    "newton_share": [("negative values", "eigenvalues of a covariance are not negative")],
    "interval": [(SIGN, "the values' mean is above 0")],
    "conjugate_gradient": [
        (
            "is left out: only what is computed from b and S|begins as b from before the update is used|"
            "b is used where|multiplies both terms|^$",
            "a residual is orthogonal to the earlier ones",
        ),
        ("transposed|symmetric|the order is the other one", "S is symmetric"),
        ("begins as b is used", "the first direction is the first residual"),
        (SIGN, "step sizes are positive, and here below 1"),
    ],
    "growth_r2": [
        ("steps loses its sign", "steps are positive"),
        (
            "steps is squared|root of steps",
            "a power of the steps doubles or halves their logarithm: the fit is as good",
        ),
    ],
    "measured_filter": [
        ("divides before the sum of", "one number divides all, or their sum"),
        ("transposed", "S is symmetric"),
        (SIGN, "eigenvalues and what is reached are not negative, nor above 1"),
        ("sorted", "edges come sorted"),
        ("the division .* comes before the sum", "a sum divided is the sum of the parts divided"),
    ],
    "delta_write": [("brought to length 1", "keys have length 1")],
    "rls_update": [
        ("transposed|symmetric|the order is the other one", "P is symmetric"),
        (SIGN, "and positive definite"),
    ],
    "recall": [("brought to length 1", "keys have length 1")],
    "binary_search": [("sorted", "what is stored is sorted")],
    "gumbel_lookup": [
        (SIGN, "uniform numbers lie between 0 and 1"),
        ("uniform is squared|root of uniform", "a power of u moves all Gumbel noise by the same number"),
    ],
    "best_so_far": [
        (
            f"{SIGN}|rounded|squared|root|divided by its sum",
            "distances are not negative, and only their order counts; they are drawn whole, for ties",
        )
    ],
    "conservative_update": [(f"{SIGN}|rounded", "counts are whole, and not negative")],
    "relative_entropy": [(SIGN, "counts are positive, and shares not above 1")],
    "moment_gap": [(f"{SIGN}|rounded", "counts are whole and positive, and shares not above 1")],
    "miscalibration": [
        ("1 too large|is doubled", "bins by other numbers are the same bins"),
        (f"{SIGN}|by (its|the) sum", "g and p are distributions: not negative, of sum 1"),
        ("taken away", "both have the sum 1, so that all gaps together are 0"),
        ("bins is", "the numbers of the bins are names"),
    ],
    "floor": [(SIGN, "shares are not negative, and not above 1")],
    "validity_bound": [
        (
            "what should be left out of g is picked: the choice is upside down, and",
            "g and p have the sum 1: what is left out differs as much",
        ),
        (f"{SIGN}|by (its|the) sum", "g and p are distributions: not negative, of sum 1"),
    ],
    "best_score": [(SIGN, "q and t are probabilities, and no answer is worth more than 1 point")],
    "within_steps": [
        (
            "differs from 0 count|0.5 stands where 0|twice what|half of what",
            "numbers of walks: whole, and not negative",
        ),
        ("transpose|symmetric|wrong order", "edges have no direction"),
        (f"{SIGN}|rounded|squared|root|compared", "only where a number of walks is positive counts; none is negative"),
        (
            "divided|multiplied|doubled|halved|brought to length|added twice|counted twice|only half",
            "nor does a positive factor matter",
        ),
        ("diagonal of edges|identity is added", "edges have no self-loops, and a second one changes nothing"),
    ],
    "masked_loss": [
        ("transposed", "edges have no direction, so pairs ij and ji are kept alike, and the mean is over both"),
        (
            "compared without its sign|0.5 stands where 0|(differs from|at most) 0 count|up to 0 count",
            "numbers of walks are whole and not negative, answers are 0 and 1",
        ),
        (
            f"{SIGN}|rounded|squared|root|brought to length|divided by its",
            "graphs and answers are 0 and 1, losses are positive, and of walks only where they are positive counts",
        ),
    ],
    "push": [
        ("the smaller of", "where an answer is 1, the other factor is not negative; where it is 0, it is below 0"),
        ("answers is missing", "the penalty counts only where answers is 0"),
        (f"{SIGN}|rounded|squared|root|comes in twice", "answers are 0 and 1, the feature is positive"),
    ],
    "influences": [(f"{SIGN}|only the sign", "values are -1 and 1")],
    "vote_under_noise": [("only the sign of values", "values are -1 and 1")],
    "weight_by_degree": [
        (f"{SIGN}|only the sign|rounded", "values are -1 and 1, and their sums whole"),
        ("divided by its sum|brought to length 1", "the squared coefficients have the sum 1"),
    ],
    "at_equal_accuracy": [("accuracy.*(sign|negative)|sign.*accuracy|between 0 and 1", "accuracies are shares")],
}
