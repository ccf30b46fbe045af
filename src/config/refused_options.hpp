// Options and values of other programs that dtrain knows by name and refuses, each with the reason and the nearest
// thing that dtrain has.
#pragma once

#include <span>

#include "option_set.hpp"

namespace dtrain::config {

struct RefusedOption {
  const char* flags;
  const char* value;  // what help calls the value; empty: a switch
  const char* reason;
  const char* hint;
  const char* accepted = nullptr;  // the value that asks for what dtrain does anyway; null: none
};

struct RefusedValue {
  const char* option;  // without dashes
  const char* text;    // a text that ends in * stands for all that begin so
  const char* reason;
  const char* hint;
};

// Adds hidden options to the set. The table must outlive it.
void refuse_options(OptionSet& set, std::span<const RefusedOption> table);
// The set has the options already. The table must outlive it.
void refuse_values(OptionSet& set, std::span<const RefusedValue> table);

}  // namespace dtrain::config
