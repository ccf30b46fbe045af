"""Commands that messages print can be pasted: folders are quoted for the shell, by JobFolder::command() or JobQueue::command()."""

import re

from lint import Finding, Tree

COMMAND = re.compile(r"\bdtrain [^\"`]*--job-(dir|queue) \{")

CLEAN = {
    "src/job/a.cpp": 'return fmt::format("dtrain {} --job-dir {}", words, net::shell_quoted(path));\n'
                     'throw UsageError(fmt::format("--job-queue {}: no such folder", folder));\n'
                     'command->examples = {"dtrain stop --job-dir job"};\n',
}
PLANTED = {
    "src/job/a.cpp": 'return fmt::format("`dtrain stop --job-dir {}` ends it", path);  // HERE\n'
                     'return fmt::format("dtrain jobs list --job-queue {0}", folder);  // HERE\n',
}


def check(tree: Tree) -> list[Finding]:
    return [Finding(path, number, "a folder may have blanks: let command() of the job folder or queue write this command")
            for path in tree.select(".cpp", ".hpp", under="src/") for number, line in tree.lines(path)
            if COMMAND.search(line) and "shell_quoted" not in line]
