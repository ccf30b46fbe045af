// Files by the beginning of their names or by a pattern (* ? [...]), in folders and behind s3://.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

bool is_digit(char c);
bool is_pattern(const std::string& text);
// Runs of digits by their number, everything else by its bytes.
bool naturally_less(const Path& left, const Path& right);
bool fits_pattern(const Path& file, const std::string& pattern);
// The files whose names match, in natural order.
std::vector<Path> matches(const std::string& pattern);
std::vector<Path> far_matches(const std::string& pattern, net::ObjectStore& store);
// The objects whose URLs begin so.
std::vector<Path> far_files(const std::string& beginning, net::ObjectStore& store);

}  // namespace dtrain::data
