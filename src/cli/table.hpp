// How commands show a table.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>

namespace dtrain::cli {

// Lines with the fields of each row in columns as wide as their longest field.
std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows);
// Such lines, the first of them painted as the heading.
void answer_rows(const std::vector<std::vector<std::string>>& rows, Reporter& reporter);

}  // namespace dtrain::cli
