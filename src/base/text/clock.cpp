#include <dtrain/base/clock.hpp>

#include <fmt/chrono.h>

namespace dtrain {

std::chrono::seconds unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
}

std::string utc_text(std::chrono::seconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(time.count())));
}

}  // namespace dtrain
