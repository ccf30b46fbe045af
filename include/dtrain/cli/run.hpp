// The program: parses the command line, runs one subcommand, returns the exit code.
#pragma once

namespace dtrain::cli {

int run(int argc, char** argv);

}  // namespace dtrain::cli
