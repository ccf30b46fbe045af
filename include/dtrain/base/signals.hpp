// Ending by a signal that leaves nothing to resume.
#pragma once

#include <optional>

#include <dtrain/base/error.hpp>

namespace dtrain {

// The work was stopped by `signal` and cannot go on later: run() says so and ends the process by that signal again,
// so that the caller's shell sees 128 and its number.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& what, std::string hint = {})
      : Error(what, std::move(hint)), signal_(signal) {}
  int signal() const { return signal_; }
  ExitCode exit_code() const override { return static_cast<ExitCode>(128 + signal_); }  // for records: a shell's code
  std::string_view kind() const override { return "interrupted"; }

 private:
  int signal_;
};

// For work whose failure is reported, and ends nothing. Stopped and Interrupted are Errors too, but the work did not
// fail then: they pass through to the caller.
// Calls work(), and returns the text and the hint of the Error that it threw; its kind is lost.
template <typename Work>
std::optional<Error> attempt(const Work& work) {
  try {
    work();
  } catch (const Stopped&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    return Error(error.what(), error.hint());
  }
  return std::nullopt;
}

}  // namespace dtrain
