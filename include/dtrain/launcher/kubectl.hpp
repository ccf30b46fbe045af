// Calls of kubectl, with the user's own configuration of it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::launcher {

class Kubectl {
 public:
  // Finds kubectl in these folders ("/usr/bin:/bin"). Throws UsageError if it is not there, or if its configuration has
  // no such context, or no current one where `context` is empty. Contacts no cluster.
  Kubectl(const std::string& folders, std::string context, std::string space);

  // The command line of these words, with context and namespace.
  std::vector<std::string> command(const std::vector<std::string>& words) const;
  // Blocks until kubectl has ended, and returns its standard output. Throws RemoteError with kubectl's own words if it
  // fails or takes too long.
  std::string call(const std::vector<std::string>& words, const std::string& input = {}) const;
  Json get(const std::vector<std::string>& words) const;  // `get WORDS -o json`

 private:
  ProgramAnswer answer(const std::vector<std::string>& words, const std::string& input) const;
  void check_context() const;

  Path program_;
  std::string context_, space_;
};

// The line that a user types for this command of Kubectl.
std::string shown_command(const std::vector<std::string>& command);

// What a kubectl that failed has written, on one line and without its prefixes.
std::string kubectl_error(std::string_view said);

}  // namespace dtrain::launcher
