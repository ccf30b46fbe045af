#include "progressive_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "config/exchange/conflicts.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kProgressive = "--progressive-resizing";
constexpr const char* kResizingParts[] = {"resizing-initial-scale", "resizing-delay", "resizing-finetune",
                                          "resizing-increment"};

}  // namespace

void bind_progressive(OptionSet& set, train::ProgressiveSizes& sizes) {
  set.group("Progressive resizing");
  set.add(kProgressive, sizes.enabled,
          "train on smaller images first, which is faster, and on whole ones in the end, as MosaicML's Composer does; "
          "evaluations see whole images. On the CPU, for classifiers");
  set.add("--resizing-initial-scale", sizes.initial_scale, "SCALE",
          "for --progressive-resizing, height and width of the first images, as a share of the whole ones",
          train::kInitialScaleRange);
  set.add("--resizing-delay", sizes.delay, "SHARE",
          "for --progressive-resizing, share of the run before images begin to grow", train::kSizeShareRange);
  set.add("--resizing-finetune", sizes.finetune, "SHARE",
          "for --progressive-resizing, share of the run at its end during which images are whole",
          train::kSizeShareRange);
  set.add("--resizing-increment", sizes.increment, "PIXELS",
          "for --progressive-resizing, number of pixels; while height and width grow, they are multiples of it",
          train::kSizeIncrementRange);
}

void check_progressive(const TrainOptions& options, const backend::Backend& backend, const OptionSet& set) {
  const train::ProgressiveSizes& sizes = options.resizing;
  if (!sizes.any()) {
    for (const char* name : kResizingParts) {
      if (!set.chosen(name)) continue;
      throw UsageError(fmt::format("--{}: without {} all images are whole", name, kProgressive),
                       fmt::format("add {}", kProgressive));
    }
    return;
  }
  refuse(kProgressive,
         {{backend.name() != "cpu",
           fmt::format("--device {}: only the cpu backend changes the size of its images", backend.name()),
           "use --device cpu"},
          {options.data.detection.has_value(), "a detector: its boxes are those of whole images", "leave it out"},
          {options.local.any(), "--local-steps: replicas have images of one size", "leave one of them out"},
          {options.job.is_by_servers(), "--kv-store dist_async or servers: their workers have images of one size",
           "leave one of them out"},
          {options.benchmark || options.test_io, "--benchmark or --test-io: these measure images of one size",
           "leave one of them out"},
          {sizes.delay + sizes.finetune > 1,
           fmt::format("--resizing-delay {} and --resizing-finetune {}: together they are more than the run",
                       sizes.delay, sizes.finetune),
           "make one of them smaller"}});
}

std::string progressive_line(const train::ProgressiveSizes& sizes, const nn::Shape& image) {
  const nn::Shape first = sizes.at(0, image);
  return fmt::format("images of {}x{} during {:g} % of the run, of {}x{} during its last {:g} %", first.h, first.w,
                     100 * sizes.delay, image.h, image.w, 100 * sizes.finetune);
}

}  // namespace dtrain::config
