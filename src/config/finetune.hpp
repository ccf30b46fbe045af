// What --finetune chooses: options that suit weights and pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::config {

struct FinetuneFacts {
  nn::NetworkOptions network;  // classes: those of the pictures; image: what the weights expect
  std::uint64_t pictures = 0;
  bool suits_adam = false;
  // What the user chose.
  std::optional<int> batch = {};
  std::optional<int> epochs = {};
  std::optional<bool> head_alone = {};  // the last layer learns, and no other; of a detector all but the backbone
  std::optional<nn::OptimizerKind> optimizer = {};
  bool has_rate = false;      // the learning rate
  bool one_cycle = false;     // a schedule that rises by itself
  bool cuts_windows = false;  // of random size, which would show the padding
};

// The weight decay of an optimizer that has a usual one, else null.
const char* usual_decay(nn::OptimizerKind kind);

// Whether the network has attentions or layer norms, as transformers and ConvNeXt have: sgd teaches these badly.
bool suits_adam(const nn::Graph& graph);

struct FinetuneChoice {
  std::string option, text;
};

// In the order in which a person would write them. A pure function:
// - A step has about an eighth of the pictures, between 8 and 32 (of small images 128), and the rate grows with its
//   square root.
// - So many epochs that there are about 600 steps, between 5 and 30, with a warm-up and a cosine.
// - Fewer than 10 pictures of a class teach the last layer alone; otherwise it learns 10 times as fast as the others.
// - Large images are cut out at random, small ones are shifted.
// - What suits adam learns by adamw, the others by sgd. Rate and decay are usual ones of the optimizer, which the user
//   may have chosen; an optimizer that has none throws UsageError unless the user chose the rate too.
// - A detector has the optimizer and the schedule of the recipe for detectors, and its rate for a batch of that size;
//   about 1500 steps, between 6 and 36 epochs. Fewer than 10 pictures of a class leave its backbone as it is.
std::vector<FinetuneChoice> finetune_choices(const FinetuneFacts& facts);

}  // namespace dtrain::config
