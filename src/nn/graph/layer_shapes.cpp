#include "layer_shapes.hpp"

#include <fmt/format.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/overloaded.hpp>

namespace dtrain::nn {
namespace {

void require(bool holds, const std::string& node, const std::string& what, const char* hint = "") {
  if (!holds) throw UsageError(fmt::format("{}: {}", node, what), hint);
}

bool in_range(int value, int low) { return value >= low && value <= kLargestExtent; }

// One axis of a window. `behind`: the zeros at the end, `pad` of them at the beginning.
struct WindowAxis {
  int kernel, stride, pad, behind, dilation = 1;
};

int window_count(const std::string& node, int size, const WindowAxis& a, bool ceil) {
  const bool makes_sense = in_range(a.kernel, 1) && in_range(a.stride, 1) && in_range(a.pad, 0) &&
                           in_range(a.behind, 0) && in_range(a.dilation, 1);
  const std::int64_t reach = (std::int64_t{a.kernel} - 1) * a.dilation + 1;
  const std::int64_t span = std::int64_t{size} + a.pad + a.behind - reach;
  require(makes_sense && span >= 0, node,
          fmt::format("a window of {}{} with stride {} and pad {}{} does not fit an input of {}", a.kernel,
                      a.dilation == 1 ? "" : fmt::format(" with dilation {}", a.dilation), a.stride, a.pad,
                      a.behind == a.pad ? "" : fmt::format(" and {}", a.behind), size),
          "use a larger image or a smaller network");
  return static_cast<int>((ceil ? (span + a.stride - 1) / a.stride : span / a.stride) + 1);
}

Shape convolved(const std::string& node, const Convolution& c, const Shape& in) {
  require(in_range(c.out, 1), node, fmt::format("{} output channels", c.out));
  require(in_range(c.groups, 1) && in.c % c.groups == 0 && c.out % c.groups == 0, node,
          fmt::format("{} groups do not divide {} input and {} output channels", c.groups, in.c, c.out));
  const std::int64_t window = std::int64_t{in.c} * c.kernel_h * c.kernel_w;
  require(c.initial != InitialWeight::whitening || (c.groups == 1 && c.out == 2 * window), node,
          fmt::format("whitening windows of {} values takes {} outputs and one group", window, 2 * window));
  require(!c.is_dense || (window == in.c && c.groups == 1), node, "a dense layer of each pixel has a window of 1x1");
  require((c.initial != InitialWeight::whitening && !c.is_dense) || c.is_plain(), node,
          "only plain windows whiten images or are dense layers: no dilation, even padding");
  return {c.out, window_count(node, in.h, {c.kernel_h, c.stride_h, c.pad_h, c.pad_h + c.extra_h, c.dilation_h}, false),
          window_count(node, in.w, {c.kernel_w, c.stride_w, c.pad_w, c.pad_w + c.extra_w, c.dilation_w}, false)};
}

Shape pooled(const std::string& node, const Pooling& p, const Shape& in) {
  if (p.global) return {in.c, 1, 1};
  // A window that lies in the padding alone would hold no element at all. At the end only `full` can make one.
  require(p.pad_h < p.kernel_h && p.pad_w < p.kernel_w, node, "a pooling window must be larger than its pad");
  const Shape out = {in.c, window_count(node, in.h, {p.kernel_h, p.stride_h, p.pad_h, p.pad_h}, p.full),
                     window_count(node, in.w, {p.kernel_w, p.stride_w, p.pad_w, p.pad_w}, p.full)};
  require((out.h - 1) * p.stride_h - p.pad_h < in.h && (out.w - 1) * p.stride_w - p.pad_w < in.w, node,
          fmt::format("the last pooling window lies outside the {}x{} input", in.h, in.w),
          "use the valid pooling convention or less padding");
  return out;
}

Shape dense(const std::string& node, const Dense& d) {
  require(in_range(d.out, 1), node, fmt::format("{} outputs", d.out));
  return {d.out, 1, 1};
}

Shape added(const std::string& node, const Shape& a, const Shape& b) {
  require(a == b, node, fmt::format("cannot add {}x{}x{} and {}x{}x{}", a.c, a.h, a.w, b.c, b.h, b.w));
  return a;
}

Shape concatenated(const std::string& node, std::span<const Shape> inputs) {
  Shape out = inputs[0];
  for (const Shape& in : inputs.subspan(1)) {
    require(in.h == out.h && in.w == out.w, node,
            fmt::format("cannot put {}x{} and {}x{} pixels together", out.h, out.w, in.h, in.w));
    require(in.c <= kLargestExtent - out.c, node, "too many channels");
    out.c += in.c;
  }
  return out;
}

Shape multiplied(const std::string& node, const Shape& in, const Shape& factors) {
  require(factors == Shape{in.c, 1, 1}, node,
          fmt::format("the channels of {}x{}x{} take {} factors, not {}x{}x{}", in.c, in.h, in.w, in.c, factors.c,
                      factors.h, factors.w));
  return in;
}

void require_epsilon(const std::string& node, float epsilon) {
  require(epsilon > 0 && epsilon < 1, node, fmt::format("an epsilon of {} is not between 0 and 1", epsilon));
}

Shape normalized(const std::string& node, const BatchNorm& b, const Shape& in) {
  require_epsilon(node, b.epsilon);
  require(b.momentum >= 0 && b.momentum <= 1, node, fmt::format("a momentum of {} is not in [0, 1]", b.momentum));
  return in;
}

Shape scaled(const std::string& node, const Scale& s, const Shape& in) {
  require(s.factor != 0 && std::isfinite(s.factor), node, fmt::format("a factor of {} leaves nothing", s.factor));
  return in;
}

Shape normalized(const std::string& node, const LocalResponseNorm& n, const Shape& in) {
  require(in_range(n.size, 1) && n.size % 2 == 1, node, fmt::format("a size of {} channels is not odd", n.size));
  require(n.bias > 0 && n.alpha >= 0 && std::isfinite(n.bias) && std::isfinite(n.alpha), node,
          fmt::format("a bias of {} and an alpha of {} make no positive sum", n.bias, n.alpha));
  require(n.beta > 0 && n.beta <= 16, node, fmt::format("a beta of {} is not above 0 and at most 16", n.beta));
  return in;
}

Shape with_class_token(const std::string& node, const Shape& in) {
  const std::int64_t tokens = std::int64_t{in.h} * in.w + 1;
  require(tokens <= kLargestExtent, node, fmt::format("{} tokens are too many", tokens));
  return {in.c, 1, static_cast<int>(tokens)};
}

Shape attended(const std::string& node, const Attention& a, const Shape& in) {
  require(in_range(a.heads, 1) && in.c % 3 == 0 && in.c / 3 % a.heads == 0, node,
          fmt::format("{} channels are no queries, keys and values of {} heads", in.c, a.heads));
  return {in.c / 3, in.h, in.w};
}

int half(int extent) { return (extent + 1) / 2; }

Shape upsampled(const std::string& node, const Shape& in, const Shape& like) {
  require(in.h <= like.h && in.w <= like.w, node,
          fmt::format("{}x{} pixels are no larger than {}x{}", like.h, like.w, in.h, in.w));
  return {in.c, like.h, like.w};
}

Shape together(const std::string& node, std::span<const Shape> levels) {
  Shape expected = levels[0];
  for (const Shape& level : levels) {
    require(level == expected, node,
            fmt::format("a level of {}x{}x{} where {}x{}x{} is half of the one before", level.c, level.h, level.w,
                        expected.c, expected.h, expected.w));
    expected = {level.c, half(level.h), half(level.w)};
  }
  const Extent extent = extent_of({static_cast<int>(levels.size()), levels[0].h, levels[0].w});
  return {levels[0].c, extent.height, extent.width};
}

void require_levels(const std::string& node, const Levels& levels, const Shape& in) {
  const bool sound = levels.count >= 1 && levels.count <= 16 && in_range(levels.height, 1) && in_range(levels.width, 1);
  require(sound, node, fmt::format("{} levels of {}x{} make no sense", levels.count, levels.height, levels.width));
  const Extent extent = extent_of(levels);
  require(in.h == extent.height && in.w == extent.width, node,
          fmt::format("the levels fill {}x{} pixels, not {}x{}", extent.height, extent.width, in.h, in.w));
}

bool is_share(float value) { return value >= 0 && value <= 1; }

// The heads of `anchors` a pixel: `logits` numbers of each in one, its code of a box in the other.
void require_heads(const std::string& node, const Levels& levels, int anchors, int logits,
                   std::span<const Shape> heads) {
  require_levels(node, levels, heads[0]);
  require_levels(node, levels, heads[1]);
  require(logits <= kLargestExtent / anchors && heads[0].c == anchors * logits && heads[1].c == anchors * 4, node,
          fmt::format("{} and {} channels are not those of {} anchors with {} logits each", heads[0].c, heads[1].c,
                      anchors, logits));
}

void require_anchors(const std::string& node, int size) {
  require(size >= kSmallestAnchor && size <= kLargestAnchor, node,
          fmt::format("anchors of {} pixels; {} to {} are taken", size, kSmallestAnchor, kLargestAnchor));
}

void require_picture(const std::string& node, const Levels& levels, int height, int width) {
  require(height >= levels.height && width >= levels.width, node,
          fmt::format("a picture of {}x{} has no levels of {}x{}", height, width, levels.height, levels.width));
}

void require_found(const std::string& node, const Detections& found) {
  require(in_range(found.classes, 1), node, fmt::format("{} classes", found.classes));
  require(in_range(found.detections, 1), node, fmt::format("{} detections", found.detections));
  require(in_range(found.image_height, 1) && in_range(found.image_width, 1), node,
          fmt::format("a picture of {}x{}", found.image_height, found.image_width));
  require(found.score_threshold < 1 && is_share(found.score_threshold) && is_share(found.overlap_threshold), node,
          fmt::format("thresholds of {} and {}", found.score_threshold, found.overlap_threshold));
  require(found.mask >= 0 && found.mask <= kLargestMask, node, fmt::format("masks of {0}x{0}", found.mask));
}

Shape detected(const std::string& node, const DetectionLoss& d, std::span<const Shape> heads) {
  require_found(node, d.found);
  require(d.found.mask == 0, node, "one stage finds no masks");
  require_heads(node, d.levels, DetectionLoss::kAnchors, d.found.classes, heads);
  require_picture(node, d.levels, d.found.image_height, d.found.image_width);
  require(in_range(d.candidates, 1), node, fmt::format("{} candidates", d.candidates));
  require_anchors(node, d.anchor_size);
  return {d.found.classes, 1, 1};
}

void require_regions(const std::string& node, const Shape& regions) {
  require(regions.c == kRegion && regions.w == 1, node,
          fmt::format("{}x{}x{} are no regions", regions.c, regions.h, regions.w));
}

Shape proposed(const std::string& node, const Proposals& p, std::span<const Shape> heads) {
  require_heads(node, p.levels, Proposals::kAnchors, 1, heads);
  require_picture(node, p.levels, p.image_height, p.image_width);
  require(in_range(p.regions, 4), node, fmt::format("{} regions, at least 4", p.regions));
  require(in_range(p.candidates, 1), node, fmt::format("{} candidates", p.candidates));
  require(is_share(p.overlap_threshold), node, fmt::format("a threshold of {}", p.overlap_threshold));
  require_anchors(node, p.anchor_size);
  return {kRegion, p.regions, 1};
}

Shape aligned(const std::string& node, const RegionAlign& a, const Shape& pyramid, const Shape& regions) {
  require_levels(node, a.levels, pyramid);
  require_picture(node, a.levels, a.image_height, a.image_width);
  require_regions(node, regions);
  require(a.used >= 1 && a.used <= a.levels.count, node, fmt::format("{} of {} levels", a.used, a.levels.count));
  require(a.size >= 1 && a.size <= kLargestMask, node, fmt::format("{0}x{0} points", a.size));
  require(in_range(pyramid.c, 1) && pyramid.c <= kLargestExtent / (a.size * a.size), node, "too many channels");
  if (!a.apart) return {pyramid.c * a.size * a.size, regions.h, 1};
  require(regions.h <= kLargestExtent / (a.size + 1), node, fmt::format("{} regions are too many", regions.h));
  return {pyramid.c, regions.h * (a.size + 1) - 1, a.size};
}

Shape with_zeros_between(const std::string& node, const KeepRegions& k, const Shape& in) {
  require(k.size >= 1 && in.w == k.size && (in.h + 1) % (k.size + 1) == 0, node,
          fmt::format("{}x{} pixels are no regions of {}x{}", in.h, in.w, k.size, k.size));
  return in;
}

// Regions, their logits and their codes: background is a class of its own.
void require_classified(const std::string& node, const Detections& found, std::span<const Shape> inputs) {
  require_found(node, found);
  require_regions(node, inputs[0]);
  const int classes = found.classes + 1, regions = inputs[0].h;
  require(inputs[1] == Shape{classes, regions, 1} && inputs[2] == Shape{4 * classes, regions, 1}, node,
          fmt::format("{}x{}x{} and {}x{}x{} are not the logits and codes of {} regions and {} classes", inputs[1].c,
                      inputs[1].h, inputs[1].w, inputs[2].c, inputs[2].h, inputs[2].w, regions, found.classes));
}

Shape found_again(const std::string& node, const FoundRegions& f, std::span<const Shape> inputs) {
  require_classified(node, f.found, inputs);
  return {kRegion, f.found.detections, 1};
}

Shape detected(const std::string& node, const RegionLoss& r, std::span<const Shape> inputs) {
  const bool has_masks = r.found.mask > 0;
  require(inputs.size() == (has_masks ? 7 : 6), node,
          fmt::format("region_loss takes 6 inputs, and 7 with masks, not {}", inputs.size()));
  require_heads(node, r.levels, Proposals::kAnchors, 1, inputs);
  require_anchors(node, r.anchor_size);
  require_classified(node, r.found, inputs.subspan(2));
  require(inputs[5] == Shape{kRegion, r.found.detections, 1}, node, "the regions found are not as many as it says");
  const auto are_masks = [&](const Shape& in) {
    return in.c == r.found.classes + 1 && in.w == r.found.mask && mask_rows(r.found, in.h) > 0;
  };
  require(!has_masks || are_masks(inputs[6]), node,
          fmt::format("{0} masks of {1}x{1} points and {2} classes expected", r.found.detections, r.found.mask,
                      r.found.classes));
  return {r.found.classes, 1, 1};
}

Shape spread(const std::string& node, const TransposedConvolution& t, const Shape& in) {
  require(in_range(t.out, 1), node, fmt::format("{} output channels", t.out));
  require(t.stride >= 1 && t.stride <= 16, node, fmt::format("a stride of {}", t.stride));
  require(in.h <= kLargestExtent / t.stride && in.w <= kLargestExtent / t.stride, node, "too many pixels");
  return {t.out, in.h * t.stride, in.w * t.stride};
}

void require_inputs(const std::string& node, const Layer& layer, std::size_t inputs) {
  if (std::holds_alternative<Concat>(layer) || std::holds_alternative<Pyramid>(layer)) {
    return require(inputs >= 2, node, fmt::format("{} takes 2 or more inputs, not {}", layer_kind(layer), inputs));
  }
  if (std::holds_alternative<RegionLoss>(layer)) return;  // says so itself
  const bool pair = std::holds_alternative<Add>(layer) || std::holds_alternative<Multiply>(layer) ||
                    std::holds_alternative<Upsample>(layer) || std::holds_alternative<DetectionLoss>(layer) ||
                    std::holds_alternative<Proposals>(layer) || std::holds_alternative<RegionAlign>(layer);
  const std::size_t expected = pair ? 2 : std::holds_alternative<FoundRegions>(layer) ? 3 : 1;
  require(inputs == expected, node, fmt::format("{} takes {} inputs, not {}", layer_kind(layer), expected, inputs));
}

Shape logits(const std::string& node, const SoftmaxLoss& s, const Shape& in) {
  require(in.h == 1 && in.w == 1 && in.c >= 2, node, "the logits must be a list of at least 2 classes");
  require(s.label_smoothing >= 0 && s.label_smoothing < 1, node,
          fmt::format("a label smoothing of {} is not in [0, 1)", s.label_smoothing));
  require(s.focal_gamma >= 0, node, fmt::format("a focal gamma of {} is below 0", s.focal_gamma));
  require(s.target_threshold >= 0 && s.target_threshold <= 1, node,
          fmt::format("a target threshold of {} is not in [0, 1]", s.target_threshold));
  require(s.class_weights.empty() || std::ssize(s.class_weights) == in.c, node,
          fmt::format("{} class weights for {} classes", s.class_weights.size(), in.c));
  for (const float weight : s.class_weights) {
    require(weight >= 0 && std::isfinite(weight), node, fmt::format("a class weight of {} makes no sense", weight));
  }
  return in;
}

}  // namespace

Shape output_shape(const std::string& node, const Layer& layer, std::span<const Shape> inputs) {
  require_inputs(node, layer, inputs.size());
  const Shape& in = inputs[0];
  const Shape out =
      std::visit(Overloaded{
                     [&](const Input&) -> Shape { throw UsageError(fmt::format("{}: a graph has one input", node)); },
                     [&](const Convolution& c) { return convolved(node, c, in); },
                     [&](const BatchNorm& b) { return normalized(node, b, in); },
                     [&](const Pooling& p) { return pooled(node, p, in); },
                     [&](const Dense& d) { return dense(node, d); },
                     [&](const Flatten&) {
                       return Shape{static_cast<int>(in.size()), 1, 1};
                     },
                     [&](const Add&) { return added(node, in, inputs[1]); },
                     [&](const Concat&) { return concatenated(node, inputs); },
                     [&](const Multiply&) { return multiplied(node, in, inputs[1]); },
                     [&](const Dropout& d) {
                       require(d.p >= 0 && d.p < 1, node, fmt::format("a dropout of {} is not in [0, 1)", d.p));
                       return in;
                     },
                     [&](const Scale& s) { return scaled(node, s, in); },
                     [&](const LocalResponseNorm& n) { return normalized(node, n, in); },
                     [&](const LayerNorm& n) {
                       require_epsilon(node, n.epsilon);
                       return in;
                     },
                     [&](const LayerScale& s) {
                       require(std::isfinite(s.initial), node, fmt::format("a gain cannot begin at {}", s.initial));
                       return in;
                     },
                     [&](const ClassToken&) { return with_class_token(node, in); },
                     [&](const Position&) { return in; },
                     [&](const FirstToken&) {
                       return Shape{in.c, 1, 1};
                     },
                     [&](const Attention& a) { return attended(node, a, in); },
                     [&](const SoftmaxLoss& s) { return logits(node, s, in); },
                     [&](const Upsample&) { return upsampled(node, in, inputs[1]); },
                     [&](const Pyramid&) { return together(node, inputs); },
                     [&](const KeepLevels& k) {
                       require_levels(node, k.levels, in);
                       return in;
                     },
                     [&](const DetectionLoss& d) { return detected(node, d, inputs); },
                     [&](const TransposedConvolution& t) { return spread(node, t, in); },
                     [&](const Proposals& p) { return proposed(node, p, inputs); },
                     [&](const RegionAlign& a) { return aligned(node, a, in, inputs[1]); },
                     [&](const KeepRegions& k) { return with_zeros_between(node, k, in); },
                     [&](const FoundRegions& f) { return found_again(node, f, inputs); },
                     [&](const RegionLoss& r) { return detected(node, r, inputs); },
                     [&](const Activation&) { return in; },
                 },
                 layer);
  require(out.size() <= kLargestActivation, node, fmt::format("{}x{}x{} values are too many", out.c, out.h, out.w));
  return out;
}

std::vector<TensorPlan> layer_tensors(const Layer& layer, const Shape& in) {
  std::vector<TensorPlan> tensors;
  if (const auto* c = std::get_if<Convolution>(&layer)) {
    std::vector<std::int64_t> shape{c->out, in.c / c->groups};
    if (!c->is_dense) shape.insert(shape.end(), {c->kernel_h, c->kernel_w});
    tensors.push_back({"_weight", std::move(shape), TensorRole::weight});
    if (c->bias) tensors.push_back({"_bias", {c->out}, TensorRole::bias});
  } else if (const auto* t = std::get_if<TransposedConvolution>(&layer)) {
    tensors = {{"_weight", {in.c, t->out, t->stride, t->stride}, TensorRole::weight},
               {"_bias", {t->out}, TensorRole::bias}};
  } else if (const auto* d = std::get_if<Dense>(&layer)) {
    tensors.push_back({"_weight", {d->out, in.size()}, TensorRole::weight});
    if (d->bias) tensors.push_back({"_bias", {d->out}, TensorRole::bias});
  } else if (std::holds_alternative<BatchNorm>(layer)) {
    tensors = {{"_gamma", {in.c}, TensorRole::gamma},
               {"_beta", {in.c}, TensorRole::beta},
               {"_moving_mean", {in.c}, TensorRole::running_mean},
               {"_moving_var", {in.c}, TensorRole::running_variance}};
  } else if (std::holds_alternative<LayerNorm>(layer)) {
    tensors = {{"_gamma", {in.c}, TensorRole::gamma}, {"_beta", {in.c}, TensorRole::beta}};
  } else if (std::holds_alternative<LayerScale>(layer)) {
    tensors.push_back({"", {in.c, 1, 1}, TensorRole::gamma});
  } else if (std::holds_alternative<ClassToken>(layer)) {
    tensors.push_back({"", {1, 1, in.c}, TensorRole::bias});
  } else if (std::holds_alternative<Position>(layer)) {
    tensors.push_back({"", {1, std::int64_t{in.h} * in.w, in.c}, TensorRole::bias});
  }
  return tensors;
}

}  // namespace dtrain::nn
