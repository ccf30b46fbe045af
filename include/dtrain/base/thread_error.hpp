// What to say where the system gives no thread.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include <dtrain/base/error.hpp>

namespace dtrain {

// `purpose`: "that loads data".
inline Error no_thread(std::string_view purpose, const std::system_error& error) {
  return Error("cannot start a thread " + std::string(purpose) + ": " + error.code().message(),
               "use fewer threads (setting 'threads', setting 'data-nthreads'), or raise the limit on processes or "
               "memory (ulimit -u, "
               "ulimit -v, or of the container)");
}

}  // namespace dtrain
