// The one place that asks the environment.
#pragma once

#include <optional>
#include <string>

namespace dtrain {

std::optional<std::string> environment(const std::string& name);

}  // namespace dtrain
