#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "command.hpp"

namespace dtrain::cli {
namespace {

using Texts = std::vector<std::string>;

Texts shown_values(const config::OptionSet& set) {
  Texts texts;
  for (const config::Option& option : set.options()) texts.push_back(option.show());
  return texts;
}

// Sets the option to another value than it has. False: none of these texts is one.
bool set_another_value(const config::Option& option) {
  const std::string before = option.show();
  Texts texts = split(option.value, '|');
  for (const char* text :
       {"true", "false", "3", "4", "0.25", "0.5", "1", "0", "5,6,7", "8,9,10", "some/where", "a", "b"})
    texts.emplace_back(text);
  for (const std::string& text : texts) {
    try {
      option.set(text);
    } catch (const Error&) {
      continue;
    }
    if (option.show() != before) return true;
  }
  return false;
}

bool are_names_of_one(const config::Option& one, const config::Option& other) {
  return one.same_as == other.name() || other.same_as == one.name();
}

// MXNet's way to say one part of what the other option says as a whole.
bool is_part(const config::Option& one, const config::Option& other) {
  const auto of_compression = [](const std::string& name) {
    return name == "gc-type" || name == "gradient-compression";
  };
  return (one.name() == "gc-threshold" && of_compression(other.name())) ||
         (other.name() == "gc-threshold" && of_compression(one.name()));
}

// Else the one that is added later decides, whatever its source.
TEST(SharedFields, BelongToOptionsThatSayThatTheyAreTheSame) {
  const CommandTree tree;
  for (const auto& command : tree.commands) {
    const config::OptionSet& set = command->options;
    for (const config::Option& option : set.options()) {
      const Texts before = shown_values(set);
      if (!set_another_value(option)) continue;
      const Texts after = shown_values(set);
      std::size_t index = 0;
      for (const config::Option& other : set.options()) {
        const bool is_changed = before[index] != after[index];
        ++index;
        if (&other == &option || !is_changed || is_part(option, other)) continue;
        EXPECT_TRUE(are_names_of_one(option, other))
            << command->path << ": " << option.shown_name() << " and " << other.shown_name();
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::cli
