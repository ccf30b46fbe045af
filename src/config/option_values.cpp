#include "option_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

void check_range(double value, Range range, const std::string& text) {
  if (!range.has(value)) throw UsageError(fmt::format("must be {}, not {}", in_words(range), text));
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

std::int64_t whole_number_in(const std::string& text, Range range, std::int64_t lowest, std::int64_t highest) {
  const auto value = parse_integer(text);
  if (!value && !is_whole(text)) throw UsageError(fmt::format("must be a whole number, not '{}'", text));
  const bool is_negative = text.starts_with('-');
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kMost = -(kLeast + 1);
  check_range(static_cast<double>(value.value_or(is_negative ? kLeast : kMost)), range, text);
  if (!value || *value < lowest || *value > highest)
    throw UsageError(fmt::format("{} is too {}", text, is_negative ? "small" : "large"));
  return *value;
}

double real_number(const std::string& text, Range range) {
  const auto value = parse_number(text);
  if (!value) throw UsageError(fmt::format("must be a number, not '{}'", text));
  check_range(*value, range, text);
  return *value;
}

bool yes_or_no(const std::string& text, const char* words) {
  for (std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  throw UsageError(fmt::format("must be {}, not '{}'", words, text));
}

bool true_or_false(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return yes_or_no(text);
}

std::string one_of(const std::string& text, std::span<const std::string> choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  constexpr std::size_t kShortest = 3;  // another word is like every shorter one
  const bool is_word = text.size() >= kShortest && !parse_number(text);
  const auto near = is_word ? nearest_name(text, choices) : std::nullopt;
  throw UsageError(fmt::format("must be one of {}, not '{}'", join(choices, ", "), text),
                   near ? fmt::format("did you mean '{}'?", *near) : "");
}

std::string not_empty(const std::string& text) {
  if (text.empty()) throw UsageError("must not be empty");
  return text;
}

std::vector<double> number_list(const std::string& text) {
  std::vector<double> numbers;
  if (trim(text).empty()) return numbers;
  for (const std::string& part : split(text, ',')) {
    const auto number = parse_number(trim(part));
    if (!number) throw UsageError(fmt::format("must be numbers separated by commas, such as 30,60, not '{}'", text));
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<double> ascending_numbers(const std::string& text) {
  std::vector<double> numbers = number_list(text);
  double last = 0;
  for (const double number : numbers) {
    if (number <= last)
      throw UsageError(fmt::format("must be numbers above 0 in ascending order, such as 30,60, not '{}'", text));
    last = number;
  }
  return numbers;
}

std::array<float, 3> three_channels(const std::string& text) {
  const auto numbers = number_list(text);
  if (numbers.size() != 1 && numbers.size() != 3) {
    throw UsageError(fmt::format("must be one number, or three separated by commas, not '{}'", text));
  }
  const auto channel = [&](std::size_t i) { return static_cast<float>(numbers[numbers.size() == 1 ? 0 : i]); };
  return {channel(0), channel(1), channel(2)};
}

std::array<float, 3> three_numbers(const std::string& text, Range range) {
  const auto numbers = number_list(text);
  if (numbers.size() != 3) {
    throw UsageError(fmt::format("must be three numbers separated by commas, not '{}'", text));
  }
  for (const double number : numbers) check_range(number, range, fmt::format("{}", number));
  return {static_cast<float>(numbers[0]), static_cast<float>(numbers[1]), static_cast<float>(numbers[2])};
}

nn::Shape image_shape(const std::string& text) {
  const auto parts = split(text, ',');
  std::array<int, 3> size{};
  bool good = parts.size() == size.size();
  for (std::size_t i = 0; good && i < size.size(); ++i) {
    const auto value = parse_integer(trim(parts[i]));
    good = value && *value >= 1 && *value <= 65536;
    if (good) size[i] = static_cast<int>(*value);
  }
  if (!good) throw UsageError(fmt::format("must be channels,height,width, such as 3,28,28, not '{}'", text));
  if (size[0] != 1 && size[0] != 3) throw UsageError(fmt::format("must have 1 or 3 channels, not {}", size[0]));
  return {size[0], size[1], size[2]};
}

Option& refuse_folders(Option& option) {
  option.set = [set = std::move(option.set)](const std::string& text) {
    set(text);
    const std::string name = Path(text).filename().string();
    if (name.empty() || name == "." || name == "..")
      throw UsageError(text + " names a folder",
                       fmt::format("add a name, such as {}", (Path(text) / "model").string()));
  };
  return option;
}

Option& add_seconds(OptionSet& set, std::string flags, Seconds& field, std::string help, Range range) {
  range.high = std::min(range.high, kMostSeconds);
  return set.add_number(
      std::move(flags), "S", std::move(help), range,
      [&field, range](const std::string& text) { field = Seconds(real_number(text, range)); },
      [&field] { return fmt::format("{}", field.count()); });
}

}  // namespace dtrain::config
