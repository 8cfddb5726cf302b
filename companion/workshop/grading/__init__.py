"""A stranger's notebook in, a mark out.

handout       what a lesson asks, and what an answer earns
handins       what was handed in, when, and which of it counts (`settings`: deadlines, who is in the class)
folders       which notebook in a student's folder is the hand-in (`stamps`: nbgrader's timestamps)
files         a handed-in file's bytes, and what is said of one that is no notebook
submissions   the answers in a notebook, read without running anything (`syntax`, `flags`)
reading       which statements an answer rests on (`slices`), and what more of the notebook may bear on it
alone         a process for each: it is read, and marked, by one that ends with it
sandbox       where a learner's function runs (`bubblewrap`, `cgroup`; it sees a course without answers: `package`)
worker        what runs in there, and speaks with `marking` over `wire`
marking       the check, outside: draws the inputs, compares the answers
workers       the processes of one submission
classroom     a whole class: what is new is marked, results are kept, pages written (`book`: the points)
feedback      what people read: the class's table and summary, the student's page
formgrader    nbgrader's side: the gradebook and the written answers
lms           from and to Canvas and Moodle
"""
