#include <dtrain/base/error.hpp>

#include <cstdio>
#include <cstdlib>

namespace dtrain {

void check_failed(const char* expression, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "dtrain: internal error at %s:%d: %s is false: %.*s\n", file, line, expression,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace dtrain
