#include "hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

struct OtherName {
  std::string_view theirs;
  std::vector<std::string> ours;  // the likeliest first
};

// Names of options in other training programs whose spelling is far from dtrain's.
const std::vector<OtherName>& other_names() {
  static const std::vector<OtherName> kNames = {{"aa", {"auto-augment"}},
                                                {"adam", {"optimizer"}},
                                                {"amp", {"dtype"}},
                                                {"arch", {"network"}},
                                                {"aug-repeats", {"repeated-augment"}},
                                                {"backbone", {"network"}},
                                                {"batch", {"batch-size"}},
                                                {"checkpoint", {"model-prefix"}},
                                                {"checkpoint-dir", {"model-prefix"}},
                                                {"checkpoint-hist", {"keep-checkpoints"}},
                                                {"clip-grad", {"clip-norm"}},
                                                {"color-jitter", {"brightness", "contrast"}},
                                                {"crop-size", {"image-shape"}},
                                                {"data", {"data-train", "data-val"}},
                                                {"data-dir", {"data-train", "data-val"}},
                                                {"data-path", {"data-train", "data-val"}},
                                                {"depth", {"num-layers"}},
                                                {"epochs", {"num-epochs"}},
                                                {"fp16", {"dtype"}},
                                                {"gpu", {"gpus"}},
                                                {"grad-accum-steps", {"accumulate"}},
                                                {"gradient-accumulation-steps", {"accumulate"}},
                                                {"hosts", {"hostfile", "num-workers"}},
                                                {"image-size", {"image-shape"}},
                                                {"img-size", {"image-shape"}},
                                                {"imgsz", {"image-shape"}},
                                                {"initial-checkpoint", {"pretrained"}},
                                                {"input-size", {"image-shape"}},
                                                {"keep-best", {"keep-checkpoints"}},
                                                {"layers", {"num-layers"}},
                                                {"learning-rate", {"lr"}},
                                                {"log-dir", {"tensorboard", "job-dir"}},
                                                {"log-interval", {"disp-batches"}},
                                                {"lr-decay", {"lr-factor"}},
                                                {"lr-milestones", {"lr-step-epochs"}},
                                                {"lr-policy", {"lr-schedule"}},
                                                {"lr-scheduler", {"lr-schedule"}},
                                                {"max-epochs", {"num-epochs"}},
                                                {"milestones", {"lr-step-epochs"}},
                                                {"model", {"network"}},
                                                {"model-ema", {"ema"}},
                                                {"model-ema-decay", {"ema"}},
                                                {"momentum", {"mom"}},
                                                {"nnodes", {"num-workers"}},
                                                {"node-rank", {"hostfile"}},
                                                {"nodes", {"num-workers"}},
                                                {"np", {"num-workers", "nproc-per-host"}},
                                                {"nproc-per-node", {"nproc-per-host"}},
                                                {"opt", {"optimizer"}},
                                                {"output", {"model-prefix", "out"}},
                                                {"output-dir", {"model-prefix", "job-dir", "out"}},
                                                {"patience", {"early-stop"}},
                                                {"precision", {"dtype"}},
                                                {"print-freq", {"disp-batches"}},
                                                {"random-seed", {"seed"}},
                                                {"reprob", {"random-erasing"}},
                                                {"save-dir", {"model-prefix"}},
                                                {"sched", {"lr-schedule"}},
                                                {"smoothing", {"label-smoothing"}},
                                                {"train-dir", {"data-train"}},
                                                {"val-dir", {"data-val"}},
                                                {"warmup", {"warmup-epochs"}},
                                                {"weight-decay", {"wd"}},
                                                {"weights", {"pretrained"}},
                                                {"workers", {"num-workers", "data-nthreads"}},
                                                {"world-size", {"num-workers"}}};
  return kNames;
}

// Names without dashes of the options that are valid after `path`: the command's and those that every command takes.
std::vector<std::string> option_names(const CommandTree& tree, const std::string& path) {
  std::vector<std::string> names;
  const auto collect = [&](const config::OptionSet& set) {
    for (const config::Option& option : set.options()) {
      if (!option.positional() && !option.hidden) names.push_back(option.name());
    }
  };
  if (const Command* command = tree.find(path)) collect(command->options);
  collect(tree.global_options);
  return names;
}

std::vector<std::string> names_of_others(std::string_view name, const std::vector<std::string>& names) {
  const auto& table = other_names();
  const auto found = std::ranges::find(table, name, &OtherName::theirs);
  std::vector<std::string> ours;
  if (found == table.end()) return ours;
  std::ranges::copy_if(found->ours, std::back_inserter(ours),
                       [&](const std::string& one) { return std::ranges::find(names, one) != names.end(); });
  return ours;
}

// What `name` may mean: itself with two dashes, another program's name, the beginning of names, or a misspelt name.
std::vector<std::string> meant(const std::string& name, const std::vector<std::string>& names) {
  if (std::ranges::find(names, name) != names.end()) return {name};
  if (auto ours = names_of_others(name, names); !ours.empty()) return ours;
  std::vector<std::string> longer;
  std::ranges::copy_if(names, std::back_inserter(longer),
                       [&](const std::string& one) { return !name.empty() && one.starts_with(name); });
  if (!longer.empty()) return longer;
  const auto near = nearest_name(name, names);
  return near ? std::vector{*near} : std::vector<std::string>();
}

// The switch that "no-NAME" is meant to turn off.
const config::Option* switch_to_turn_off(const CommandTree& tree, const std::string& path, const std::string& name) {
  constexpr std::string_view kNegation = "no-";
  if (!name.starts_with(kNegation)) return nullptr;
  const std::string turned_off = name.substr(kNegation.size());
  const Command* const command = tree.find(path);
  const config::Option* option = command ? command->options.find(turned_off) : nullptr;
  if (!option) option = tree.global_options.find(turned_off);
  return option && option->is_switch() ? option : nullptr;
}

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

// A word of `choices` that means the same, or is like it.
std::optional<std::string> same_or_near(const std::string& word, const std::vector<std::string>& choices) {
  constexpr std::pair<std::string_view, std::string_view> kSame[] = {{"ls", "list"}, {"list", "ls"}, {"rm", "remove"}};
  for (const auto& [one, other] : kSame) {
    if (word == one && std::ranges::find(choices, other) != choices.end()) return std::string(other);
  }
  return nearest_name(word, choices);
}

// Commands that other programs call so behind `path`, in quotes.
std::vector<std::string> commands_of_others(const CommandTree& tree, const std::string& path, const std::string& word) {
  struct OtherWord {
    std::string_view path, theirs, ours;
  };
  constexpr OtherWord kWords[] = {
      {"cluster", "create", "cluster up"},     {"cluster", "delete", "cluster down"},
      {"cluster", "destroy", "cluster down"},  {"cluster", "resize", "cluster add"},
      {"cluster", "resize", "cluster remove"}, {"cluster", "scale", "cluster add"},
      {"cluster", "scale", "cluster remove"},  {"cluster", "terminate", "cluster down"},
  };
  std::vector<std::string> ours;
  for (const OtherWord& one : kWords) {
    if (one.path == path && one.theirs == word && tree.find(std::string(one.ours)))
      ours.push_back(fmt::format("'dtrain {}'", one.ours));
  }
  return ours;
}

// The commands, in quotes, that `word` may mean behind `path`: one of this group, those of other groups that end in it,
// or, without a group, those that end in a word like it.
std::vector<std::string> meant_commands(const CommandTree& tree, const std::string& path, const std::string& word) {
  if (auto ours = commands_of_others(tree, path, word); !ours.empty()) return ours;
  std::vector<std::string> last_words;
  for (const auto& command : tree.commands) last_words.push_back(last_word(command->path));
  const bool ends_one = std::ranges::find(last_words, word) != last_words.end();
  const auto near = same_or_near(word, tree.next_words(path));
  if (near && !(ends_one && path.empty())) return {fmt::format("'dtrain {}{}'", path.empty() ? "" : path + " ", *near)};
  if (!ends_one && !path.empty()) return {};
  const std::string last = ends_one ? word : nearest_name(word, last_words).value_or("");
  std::vector<std::string> likely;
  for (const auto& command : tree.commands) {
    if (last_word(command->path) == last) likely.push_back(fmt::format("'dtrain {}'", command->path));
  }
  return likely;
}

// What to do about the unknown option `name`, without dashes; empty: nothing is like it.
std::string hint_of_stranger(const CommandTree& tree, const std::string& path, const std::string& name) {
  const Command* const command = tree.find(path);
  if (name == "model-prefix" && command && command->options.find("PREFIX") && !command->options.find(name))
    return fmt::format("give the prefix without an option: `dtrain {} PREFIX`", path);
  if (const config::Option* off = switch_to_turn_off(tree, path, name)) return hint_without_switch(*off);
  return hint_of_option(name, option_names(tree, path), "--");
}

bool names_something(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool names_records(const std::string& word) { return names_something(word.ends_with(".rec") ? word : word + ".rec"); }

// The option that the word may belong to; empty: none.
std::string option_of_extra_word(const Command& command, bool takes_words, const std::string& word) {
  const auto has = [&](const char* name) { return command.options.find(name) != nullptr; };
  if (takes_words) return has("data-val") ? "data-val" : has("out") ? "out" : "";
  if (has("data-train")) return names_something(word) || names_records(word) ? "data-train" : "";
  return has("job-dir") ? "job-dir" : "";
}

}  // namespace

std::string hint_without_switch(const config::Option& option) {
  std::string hint = fmt::format("leave {} out", option.shown_name());
  if (option.flag_only) return hint;
  return fmt::format("{}; where a file or a variable sets it: {}=0", hint, option.variable());
}

std::string hint_of_extra_word(const Command& command, const std::string& word) {
  if (word == "help") return fmt::format("`dtrain {} --help` explains the command", command.path);
  const auto& options = command.options.options();
  const auto first = std::ranges::find_if(options, &config::Option::positional);
  const std::string taken = first == options.end() ? "" : first->given.value_or("");
  if (command.options.find("data-val") && names_records(taken) && !names_records(word))
    return fmt::format("did you mean 'dtrain {} {} --data-val {}'?", command.path, word, taken);
  if (const std::string name = option_of_extra_word(command, first != options.end(), word); !name.empty())
    return fmt::format("did you mean '--{} {}'? `dtrain {} --help` lists the arguments", name, word, command.path);
  return fmt::format(
      "put quotes around a value with spaces, or around a pattern such as 'd/*.rec'; `dtrain {} --help` "
      "lists the arguments",
      command.path);
}

std::string hint_of_option(const std::string& name, const std::vector<std::string>& names, std::string_view dashes) {
  auto near = meant(name, names);
  for (std::string& one : near) one.insert(0, dashes);
  if (near.size() > 1) return fmt::format("it could be {}", join(near, ", "));
  return near.empty() ? std::string() : fmt::format("did you mean '{}'?", near.front());
}

bool is_name_of_others(const CommandTree& tree, const std::string& path, const std::string& name) {
  return !names_of_others(name, option_names(tree, path)).empty();
}

void refuse_command(const CommandTree& tree, const std::string& path, const std::string& word) {
  const std::string lead = path.empty() ? "" : path + " ";
  const std::vector<std::string> likely = meant_commands(tree, path, word);
  std::string hint = fmt::format("commands are: {}", join(tree.next_words(path), ", "));
  if (likely.size() == 1) hint = fmt::format("did you mean {}?", likely.front());
  if (likely.size() > 1) hint = fmt::format("it could be {}", join(likely, ", "));
  throw UsageError(fmt::format("{}{}: unknown command", lead, word), hint);
}

void refuse_option(const CommandTree& tree, const std::string& path, const std::string& word) {
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  std::string hint = hint_of_stranger(tree, path, word.substr(dashes, word.find('=') - dashes));
  if (hint.empty()) {
    const Command* command = tree.find(path);
    const bool takes_names = command && std::ranges::any_of(command->options.options(), &config::Option::positional);
    hint = fmt::format("`dtrain {}--help` lists the options{}", path.empty() ? "" : path + " ",
                       takes_names ? "; put a name that begins with - after --" : "");
  }
  throw UsageError(
      fmt::format("{}: unknown option{}", word.substr(0, word.find('=')), tree.find(path) ? "" : " before a command"),
      hint);
}

}  // namespace dtrain::cli
