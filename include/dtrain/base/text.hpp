// Small text helpers: parsing numbers strictly, splitting, advice for typos, sizes and times for people.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);  // keeps empty parts; "" gives one empty part
std::string join(std::span<const std::string> parts, std::string_view separator);
// At most so many of them; then the separator and "and N more", where N are left.
std::string join_first(std::span<const std::string> parts, std::size_t most, std::string_view separator);
std::string lower_case(std::string_view text);  // of ASCII letters
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);

// The whole text must be the number; nullopt otherwise.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// The candidate within edit distance max(1, length / 3) of `word`, nearest first; nullopt if none is near.
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> candidates);

// "1 worker", "2 workers"
std::string count_text(std::integral auto count, std::string_view noun) {
  return std::to_string(count).append(1, ' ').append(noun).append(count == 1 ? "" : "s");
}

std::string format_bytes(std::uint64_t bytes);                       // "1.5 MiB"
std::string format_duration(std::chrono::duration<double> seconds);  // "850 ms", "3.2 s", "2:05", "1:02:03"

}  // namespace dtrain
