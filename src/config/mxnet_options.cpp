#include "mxnet_options.hpp"

#include "refused_options.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kCropSize = "a random crop has the size of the network's input, or a share of the image's area";
constexpr const char* kAccumulation = "a large batch needs no optimizer of its own";
constexpr const char* kProfile = "a run writes no profile of its operations";

constexpr RefusedOption kOptions[] = {
    {"--min-crop-size", "PIXELS", kCropSize, "use --random-resized-crop 1 with --min-random-area", "-1"},
    {"--max-crop-size", "PIXELS", kCropSize, "use --random-resized-crop 1 with --max-random-area", "-1"},
    {"--save-period", "EPOCHS", "a checkpoint is written beside the steps after every epoch",
     "use --keep-checkpoints N to keep the newest N only", "1"},
    {"--macrobatch-size", "N", kAccumulation, "use --global-batch N, with --logical-shards to bound the memory", "0"},
    {"--profile-worker-suffix", "NAME", kProfile, "use `dtrain bench train`, which lists the time of each operation",
     ""},
    {"--profile-server-suffix", "NAME", kProfile, "use `dtrain bench train`, which lists the time of each operation",
     ""}};

constexpr RefusedValue kValues[] = {
    {"initializer", "orthogonal", "each weight is drawn on its own", "use --initializer xavier"},
    {"optimizer", "dcasgd", "servers do not correct gradients that come late", "use --optimizer sgd"},
    {"optimizer", "lbsgd", "its rates for large batches are those of lars",
     "use --optimizer lars with --global-batch and --warmup-epochs"},
    {"lr-step-epochs", "pow*", "a power of the share of the run that is left is a schedule of its own",
     "use --lr-schedule poly with --lr-power, such as 2 for pow2"}};

}  // namespace

void bind_mxnet(OptionSet& set) {
  refuse_options(set, kOptions);
  refuse_values(set, kValues);
}

}  // namespace dtrain::config
