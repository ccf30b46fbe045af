// A variable of this process's environment, as one test wants it.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>

#include <dtrain/base/environment.hpp>

namespace dtrain {

// nullopt: not set. What was there before comes back at the end.
class SetVariable {
 public:
  SetVariable(std::string name, const std::optional<std::string>& value)
      : name_(std::move(name)), before_(environment(name_)) {
    set(value);
  }
  ~SetVariable() { set(before_); }
  SetVariable(const SetVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace dtrain
