// Error kinds, named by what the catcher does with them. cli::run turns each into an exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace dtrain {

// Exit codes of the program, one meaning each; `dtrain help exit-codes` prints the table in src/cli.
enum class ExitCode {
  ok = 0,
  failed = 1,
  usage = 2,
  partly_done = 3,
  refused = 4,
  impaired = 20,
  resumable = 75,
  no_progress = 93,
};

// Anything that went wrong in the world: what() says what, where and why; hint() says what to do next (may be empty).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, std::string hint = {}) : std::runtime_error(what), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }
  virtual ExitCode exit_code() const { return ExitCode::failed; }
  virtual std::string_view kind() const { return "error"; }

 private:
  std::string hint_;
};

// The person asked for something that cannot be meant: flags, values, configuration.
class UsageError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::usage; }
  std::string_view kind() const override { return "usage"; }
};

// Input data is missing, damaged or of the wrong shape.
class DataError : public Error {
 public:
  using Error::Error;
  std::string_view kind() const override { return "data"; }
};

// Another machine refused us or could not be reached.
class RemoteError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::refused; }
  std::string_view kind() const override { return "remote"; }
};

// A rank of the same job is gone; the communicator that threw it is dead, make a new one.
class PeerLost : public Error {
 public:
  using Error::Error;
  std::string_view kind() const override { return "peer-lost"; }
};

// A GPU reported a failure. It does so late: what() names the call that noticed it, not the work that failed.
class DeviceFailure : public Error {
 public:
  using Error::Error;
};

// The job stopped on request and can go on later from its checkpoint.
class Stopped : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::resumable; }
  std::string_view kind() const override { return "stopped"; }
};

[[noreturn]] void check_failed(const char* expression, const char* file, int line, std::string_view message);

}  // namespace dtrain

// For broken invariants of our own code only: prints and aborts. Never for bad input.
#define DTRAIN_CHECK(condition, message) \
  ((condition) ? void(0) : ::dtrain::check_failed(#condition, __FILE__, __LINE__, (message)))
