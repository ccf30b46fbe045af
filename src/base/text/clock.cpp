#include <dtrain/base/clock.hpp>

#include <fmt/chrono.h>

#include <cstring>
#include <ctime>
#include <string_view>

namespace dtrain {

std::chrono::seconds unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
}

std::string utc_text(std::chrono::seconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(time.count())));
}

std::optional<std::chrono::seconds> unix_time_of(const std::string& text) {
  std::tm clock{}, offset{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &clock);
  if (!rest) return std::nullopt;
  if (*rest == '.') rest += 1 + std::strspn(rest + 1, "0123456789");
  if (const std::string_view zone = rest; !zone.empty() && zone != "UTC") {
    rest = ::strptime(rest, "%z", &offset);
    if (!rest || *rest != '\0') return std::nullopt;
  }
  return std::chrono::seconds(::timegm(&clock) - offset.tm_gmtoff);
}

}  // namespace dtrain
