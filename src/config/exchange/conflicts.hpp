// Options that contradict the one that chooses how workers exchange.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>

namespace dtrain::config {

struct Conflict {
  bool is_there;
  std::string what;  // "--other-option: why not"
  const char* hint;
};

// Throws UsageError for the first that is there.
inline void refuse(std::string_view option, const std::vector<Conflict>& conflicts) {
  for (const Conflict& conflict : conflicts) {
    if (conflict.is_there) throw UsageError(fmt::format("{} with {}", option, conflict.what), conflict.hint);
  }
}

}  // namespace dtrain::config
