#include <dtrain/base/environment.hpp>

#include <cstdlib>

namespace dtrain {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace dtrain
