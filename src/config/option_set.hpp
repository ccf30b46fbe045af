// The options of one command: each is declared once, with its field, default, unit and help; flags, variables,
// configuration keys, help and the generated documents are all views of this.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::config {

// Where a value came from, from the weakest to the strongest.
enum class Source { fallback, recipe, user_config, project_config, named_config, environment, flag };

constexpr char kBetweenRepeated = '\0';  // no word of a command line holds it

// What a shell offers for a value; choices that help lists are offered anyway.
enum class Offers { nothing, files, hosts, jobs, networks, checkpoints, epochs };

// A value, or every value where the text is empty, that an option refuses by name; a text that ends in * stands for all
// that begin so.
struct Refusal {
  std::string text, reason, hint;
};

class OptionSet;

struct Option {
  std::string flags;  // "--lr" or "-n,--num-workers"; without a dash it is a positional: "PREFIX"
  std::string value;  // what help calls the value; empty: a switch
  std::string help;
  std::string group;
  bool required = false;                     // missing after all sources: UsageError
  std::string required_except;               // what it does not hold for, for documents: "for an ONNX model"
  bool many = false;                         // positional that takes every remaining word
  std::string between_words = " ";           // what joins these words into one text
  bool repeats = false;                      // may be given again: all texts, with kBetweenRepeated between them
  bool comma_list = false;                   // its text may hold several values, with commas between them
  std::optional<std::string> without_value;  // the text of an option that is followed by none: `--gpus` for `--gpus ""`
  // It runs a command, chooses a machine, gives rights or lifts protection, so ./dtrain.toml, which may come with a
  // downloaded folder, must not set it.
  bool not_from_project = false;
  bool flag_only = false;   // neither from the environment nor from a configuration file
  bool hidden = false;      // for dtrain itself: no document names it
  bool by_machine = false;  // the default differs between machines: documents leave it out
  // Without a choice, what is found decides, such as a checkpoint: the field's value is then none. The help describes
  // it.
  bool found_later = false;
  Offers offers = Offers::nothing;
  ValueRange range;  // which numbers the option takes
  // A positional that takes the words that follow `--`, or the other positionals, byte for byte, options or not.
  std::function<void(std::vector<std::string> words)> take_words;
  std::string legacy_variable;                       // of the predecessors' set-up: weaker than variable(); often empty
  std::function<void(const std::string& text)> set;  // throws UsageError that says only what is wrong with the text
  // Instead of set, for the text of legacy_variable, where that says it in other words; often empty. It sees the
  // final values of the options that were added before.
  std::function<void(const std::string& text)> set_legacy;
  std::function<std::string()> show;  // the present value; empty: none
  std::vector<Refusal> refusals;      // what set() refuses by name, for documents
  // Name of the option, added before, of which this is another name: both set one field, and the one that comes from
  // the stronger source decides. Often empty.
  std::string same_as;

  std::optional<std::string> given;  // what stood on the command line
  Source source = Source::fallback;
  std::string origin = "default";  // for people: "--lr", "DTRAIN_LR", "dtrain.toml:3"

  bool positional() const { return !flags.starts_with('-'); }
  bool is_switch() const { return value.empty(); }
  std::string name() const;        // "num-workers", "PREFIX": also the key in configuration files
  char letter() const;             // 'n'; 0: none
  std::string variable() const;    // "DTRAIN_NUM_WORKERS"
  std::string shown_name() const;  // "--num-workers", "PREFIX"
  // Where the help ends in "(default the newest)", these words; else empty.
  std::string described_default() const;
  // "between 0 and 1", for documents; empty where it says no more than that a count is one.
  std::string shown_range() const;
};

// Where the value came from, without the key of a file: "dtrain.toml:3".
std::string plain_origin(const Option& option);
// Name of the option; where no flag gave it, also value and origin: "--encoding png (dtrain.toml:2)".
std::string with_origin(const Option& option);

// Of two options that contradict each other, the one from the stronger source decides. Throws UsageError, which says
// `why` they do, where both are as strong.
bool first_decides(const Option& first, const Option& second, std::string_view why);
bool first_decides(const OptionSet& set, std::string_view first, std::string_view second, std::string_view why);

using Range = ValueRange;
using dtrain::at_least;
using dtrain::between;
using dtrain::more_than;

// Named sets of values that replace the defaults of other options, chosen by one option (`--recipe imagenet`), or by
// the value of another one (`--network mask-rcnn`) where that is not chosen.
struct Preset {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;  // option name, text
  std::vector<std::string> suits = {};                      // values of the other option
};

// Fields are borrowed and must outlive the set. References that add() returns stay valid.
class OptionSet {
 public:
  OptionSet& group(std::string title);

  Option& add(std::string flags, std::string& field, std::string value, std::string help);
  Option& add(std::string flags, std::optional<std::string>& field, std::string value, std::string help);
  Option& add(std::string flags, std::optional<Path>& field, std::string help);
  // An empty text, too, stands for none: it takes back what a weaker source says.
  Option& add_path_or_none(std::string flags, std::optional<Path>& field, std::string help);
  Option& add(std::string flags, Path& field, std::string help);
  // Every remaining word is a path.
  Option& add_paths(std::string flags, std::vector<Path>& field, std::string help);
  Option& add(std::string flags, int& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, std::optional<int>& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, std::int64_t& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, std::uint64_t& field, std::string value, std::string help);
  Option& add(std::string flags, double& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, std::optional<double>& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, float& field, std::string value, std::string help, Range range = {});
  Option& add(std::string flags, bool& field, std::string help);              // a switch
  Option& add_zero_or_one(std::string flags, bool& field, std::string help);  // MXNet's 0 and 1
  Option& add_choice(std::string flags, std::string& field, std::vector<std::string> choices, std::string help);
  Option& add_numbers(std::string flags, std::vector<double>& field, std::string value, std::string help);
  // Numbers above 0, in ascending order, with commas between them.
  Option& add_ascending(std::string flags, std::vector<double>& field, std::string value, std::string help);
  Option& add_channels(std::string flags, std::array<float, 3>& field, std::string help);  // R,G,B
  Option& add_shape(std::string flags, nn::Shape& field, std::string help);                // C,H,W
  // Another program's command line; one a command, its last positional.
  Option& add_words(std::string name, std::vector<std::string>& field, std::string help);
  Option& add_custom(std::string flags, std::string value, std::string help,
                     std::function<void(const std::string&)> set, std::function<std::string()> show);
  // `set` checks the range.
  Option& add_number(std::string flags, std::string value, std::string help, Range range,
                     std::function<void(const std::string&)> set, std::function<std::string()> show);

  void presets(std::string chooser, std::string other, std::vector<Preset> presets);
  // The options that choose a preset, the stronger one first; empty without presets.
  std::vector<std::string> preset_choosers() const;
  void apply_preset();  // that of the choosers' values, which they have checked

  // `settle` is called by settle(), once every option has its value: where two options contradict each other, the one
  // from the stronger source decides.
  void after_sources(std::function<void(OptionSet&)> settle) { settles_.push_back(std::move(settle)); }
  void settle();

  // Of a set that was bound to the same kind of struct: where the values came from, not the values.
  void take_sources(const OptionSet& other);

  std::deque<Option>& options() { return options_; }
  const std::deque<Option>& options() const { return options_; }
  Option* find(std::string_view name);
  const Option* find(std::string_view name) const;
  // True when the person chose the value: it is neither the default nor a recipe's.
  bool chosen(std::string_view name) const;

 private:
  const Preset& choose_preset();

  std::string group_ = "Options";
  std::deque<Option> options_;
  std::string chooser_, other_chooser_;
  std::vector<Preset> presets_;
  std::vector<std::function<void(OptionSet&)>> settles_;
};

}  // namespace dtrain::config
