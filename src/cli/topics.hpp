// Pages that belong to no single command: `dtrain help TOPIC`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

std::vector<std::string> topic_names();
// nullopt: no such topic.
std::optional<std::string> topic_text(const CommandTree& tree, std::string_view name);
std::string exit_codes_topic();

}  // namespace dtrain::cli
