#include "option_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "option_values.hpp"

namespace dtrain::config {

std::string Option::name() const {
  if (positional()) return flags;
  const auto dashes = flags.find("--");
  return dashes == std::string::npos ? flags.substr(1) : flags.substr(dashes + 2);
}

char Option::letter() const { return flags.size() > 1 && flags[0] == '-' && flags[1] != '-' ? flags[1] : '\0'; }

std::string Option::variable() const {
  std::string text = "DTRAIN_" + name();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return text;
}

std::string Option::shown_name() const {
  if (positional()) return flags;
  return (flags.find("--") == std::string::npos ? "-" : "--") + name();
}

std::string Option::described_default() const {
  constexpr std::string_view kBegin = " (default ";
  const std::size_t at = help.ends_with(')') ? help.rfind(kBegin) : std::string::npos;
  return at == std::string::npos ? "" : help.substr(at + kBegin.size(), help.size() - at - kBegin.size() - 1);
}

std::string Option::shown_range() const {
  const bool is_count = !range.low_is_out && (range.low == 0 || range.low == 1) && range.high == ValueRange().high;
  return is_count ? "" : in_words(range);
}

std::string plain_origin(const Option& option) {
  const std::string tail = ": " + option.name();
  return option.origin.ends_with(tail) ? option.origin.substr(0, option.origin.size() - tail.size()) : option.origin;
}

std::string with_origin(const Option& option) {
  if (option.source == Source::flag) return option.shown_name();
  const std::string value = option.is_switch() ? std::string() : " " + option.show();
  return fmt::format("{}{} ({})", option.shown_name(), value, plain_origin(option));
}

bool first_decides(const Option& first, const Option& second, std::string_view why) {
  if (first.source != second.source) return first.source > second.source;
  throw UsageError(fmt::format("{} and {}: {}", with_origin(first), with_origin(second), why), "give one of them");
}

bool first_decides(const OptionSet& set, std::string_view first, std::string_view second, std::string_view why) {
  return first_decides(*set.find(first), *set.find(second), why);
}

OptionSet& OptionSet::group(std::string title) {
  group_ = std::move(title);
  return *this;
}

Option& OptionSet::add_custom(std::string flags, std::string value, std::string help,
                              std::function<void(const std::string&)> set, std::function<std::string()> show) {
  Option& option = options_.emplace_back();
  option.flags = std::move(flags);
  option.value = std::move(value);
  option.help = std::move(help);
  option.group = group_;
  option.set = std::move(set);
  option.show = std::move(show);
  option.flag_only = option.positional();
  return option;
}

Option& OptionSet::add_words(std::string name, std::vector<std::string>& field, std::string help) {
  Option& option = add_custom(
      name, name, std::move(help), [](const std::string&) {}, [&field] { return join(field, " "); });
  option.take_words = [&field](std::vector<std::string> words) { field = std::move(words); };
  return option;
}

Option& OptionSet::add(std::string flags, std::string& field, std::string value, std::string help) {
  return add_custom(
      std::move(flags), std::move(value), std::move(help), [&field](const std::string& text) { field = text; },
      [&field] { return field; });
}

Option& OptionSet::add(std::string flags, std::optional<std::string>& field, std::string value, std::string help) {
  return add_custom(
      std::move(flags), std::move(value), std::move(help), [&field](const std::string& text) { field = text; },
      [&field] { return field.value_or(""); });
}

Option& OptionSet::add(std::string flags, std::optional<Path>& field, std::string help) {
  Option& option = add_custom(
      std::move(flags), "PATH", std::move(help),
      [&field](const std::string& text) {
        if (text.empty()) throw UsageError("must not be empty", "give a path, or leave the option out");
        field = text;
      },
      [&field] { return field ? field->string() : std::string(); });
  option.offers = Offers::files;
  return option;
}

Option& OptionSet::add_path_or_none(std::string flags, std::optional<Path>& field, std::string help) {
  Option& option = add(std::move(flags), field, std::move(help));
  option.set = [&field](const std::string& text) { field = text.empty() ? std::nullopt : std::optional<Path>(text); };
  return option;
}

Option& OptionSet::add(std::string flags, Path& field, std::string help) {
  Option& option = add_custom(
      std::move(flags), "PATH", std::move(help), [&field](const std::string& text) { field = not_empty(text); },
      [&field] { return field.string(); });
  option.offers = Offers::files;
  return option;
}

Option& OptionSet::add_paths(std::string flags, std::vector<Path>& field, std::string help) {
  const auto set = [&field](const std::string& text) {
    field.clear();
    for (const std::string& word : split(text, kBetweenRepeated)) field.emplace_back(not_empty(word));
  };
  const auto show = [&field] {
    std::vector<std::string> words;
    for (const Path& path : field) words.push_back(path.string());
    return join(words, " ");
  };
  Option& option = add_custom(std::move(flags), "PATH", std::move(help), set, show);
  option.many = true;
  option.offers = Offers::files;
  option.between_words = std::string(1, kBetweenRepeated);  // a path may have a line break
  return option;
}

Option& OptionSet::add_number(std::string flags, std::string value, std::string help, Range range,
                              std::function<void(const std::string&)> set, std::function<std::string()> show) {
  Option& option = add_custom(std::move(flags), std::move(value), std::move(help), std::move(set), std::move(show));
  option.range = range;
  return option;
}

Option& OptionSet::add(std::string flags, int& field, std::string value, std::string help, Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = whole_number<int>(text, range); },
      [&field] { return std::to_string(field); });
}

Option& OptionSet::add(std::string flags, std::optional<int>& field, std::string value, std::string help, Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = whole_number<int>(text, range); },
      [&field] { return field ? std::to_string(*field) : std::string(); });
}

Option& OptionSet::add(std::string flags, std::int64_t& field, std::string value, std::string help, Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = whole_number<std::int64_t>(text, range); },
      [&field] { return std::to_string(field); });
}

Option& OptionSet::add(std::string flags, std::uint64_t& field, std::string value, std::string help) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), at_least(0),
      [&field](const std::string& text) {
        field = static_cast<std::uint64_t>(whole_number<std::int64_t>(text, at_least(0)));
      },
      [&field] { return std::to_string(field); });
}

Option& OptionSet::add(std::string flags, double& field, std::string value, std::string help, Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = real_number(text, range); },
      [&field] { return fmt::format("{}", field); });
}

Option& OptionSet::add(std::string flags, std::optional<double>& field, std::string value, std::string help,
                       Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = real_number(text, range); },
      [&field] { return field ? fmt::format("{}", *field) : std::string(); });
}

Option& OptionSet::add(std::string flags, float& field, std::string value, std::string help, Range range) {
  return add_number(
      std::move(flags), std::move(value), std::move(help), range,
      [&field, range](const std::string& text) { field = static_cast<float>(real_number(text, range)); },
      [&field] { return fmt::format("{}", field); });
}

Option& OptionSet::add(std::string flags, bool& field, std::string help) {
  return add_custom(
      std::move(flags), "", std::move(help), [&field](const std::string& text) { field = yes_or_no(text); },
      [&field] { return field ? "true" : "false"; });
}

Option& OptionSet::add_zero_or_one(std::string flags, bool& field, std::string help) {
  return add_custom(
      std::move(flags), "0|1", std::move(help), [&field](const std::string& text) { field = yes_or_no(text); },
      [&field] { return field ? "1" : "0"; });
}

Option& OptionSet::add_choice(std::string flags, std::string& field, std::vector<std::string> choices,
                              std::string help) {
  std::string value = join(choices, "|");
  return add_custom(
      std::move(flags), std::move(value), std::move(help),
      [&field, choices = std::move(choices)](const std::string& text) { field = one_of(text, choices); },
      [&field] { return field; });
}

Option& OptionSet::add_numbers(std::string flags, std::vector<double>& field, std::string value, std::string help) {
  Option& option = add_custom(
      std::move(flags), std::move(value), std::move(help),
      [&field](const std::string& text) { field = number_list(text); },
      [&field] { return fmt::format("{}", fmt::join(field, ",")); });
  option.comma_list = true;
  return option;
}

Option& OptionSet::add_ascending(std::string flags, std::vector<double>& field, std::string value, std::string help) {
  Option& option = add_numbers(std::move(flags), field, std::move(value), std::move(help));
  option.set = [&field](const std::string& text) { field = ascending_numbers(text); };
  return option;
}

Option& OptionSet::add_channels(std::string flags, std::array<float, 3>& field, std::string help) {
  Option& option = add_custom(
      std::move(flags), "R,G,B", std::move(help), [&field](const std::string& text) { field = three_channels(text); },
      [&field] { return fmt::format("{}", fmt::join(field, ",")); });
  option.comma_list = true;
  return option;
}

Option& OptionSet::add_shape(std::string flags, nn::Shape& field, std::string help) {
  Option& option = add_custom(
      std::move(flags), "C,H,W", std::move(help), [&field](const std::string& text) { field = image_shape(text); },
      [&field] { return fmt::format("{},{},{}", field.c, field.h, field.w); });
  option.comma_list = true;
  return option;
}

void OptionSet::presets(std::string chooser, std::string other, std::vector<Preset> presets) {
  chooser_ = std::move(chooser);
  other_chooser_ = std::move(other);
  presets_ = std::move(presets);
}

std::vector<std::string> OptionSet::preset_choosers() const {
  if (presets_.empty()) return {};
  return {chooser_, other_chooser_};
}

const Preset& OptionSet::choose_preset() {
  Option& chooser = *find(chooser_);
  const Option& other = *find(other_chooser_);
  const std::string value = other.show();
  const auto suits = [&](const Preset& preset) { return std::ranges::count(preset.suits, value) > 0; };
  const auto suiting = std::ranges::find_if(presets_, suits);
  if (!chosen(chooser_) && chosen(other_chooser_) && suiting != presets_.end()) {
    chooser.set(suiting->name);
    chooser.source = Source::recipe;
    chooser.origin = fmt::format("{} {}", other_chooser_, value);
  }
  const auto named = std::ranges::find(presets_, chooser.show(), &Preset::name);
  DTRAIN_CHECK(named != presets_.end(), "the chooser of presets knows their names");
  return *named;
}

void OptionSet::apply_preset() {
  if (presets_.empty()) return;
  const Preset& preset = choose_preset();
  for (const auto& [key, text] : preset.values) {
    Option* option = find(key);
    DTRAIN_CHECK(option, "a preset names existing options");
    option->set(text);
    option->source = Source::recipe;
    option->origin = chooser_ + " " + preset.name;
  }
}

void OptionSet::settle() {
  for (const auto& settle : settles_) settle(*this);
}

void OptionSet::take_sources(const OptionSet& other) {
  for (Option& option : options_) {
    const Option* from = other.find(option.name());
    DTRAIN_CHECK(from, "both sets have the same options");
    option.given = from->given;
    option.source = from->source;
    option.origin = from->origin;
  }
}

const Option* OptionSet::find(std::string_view name) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name() == name; });
  return found == options_.end() ? nullptr : &*found;
}

Option* OptionSet::find(std::string_view name) { return const_cast<Option*>(std::as_const(*this).find(name)); }

bool OptionSet::chosen(std::string_view name) const {
  const Option* option = find(name);
  return option && option->source > Source::recipe;
}

}  // namespace dtrain::config
