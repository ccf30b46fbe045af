"""Writes the ONNX files of torch.onnx that tests/judge/onnx_networks.py judges: _torch_exports.py FOLDER

The modules are written as torchvision, timm, transformers and the authors of ConvNeXt write them, with few channels.
"""

import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

SIZE, CLASSES, WIDTH, HEADS, PATCH = 32, 7, 24, 3, 8


class TorchvisionBlock(nn.Module):
    """torchvision.models.vision_transformer.EncoderBlock."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.mlp(self.ln_2(x))


class TimmBlock(nn.Module):
    """timm.models.vision_transformer.Block: one layer for queries, keys and values, and LayerScale."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.ls1, self.ls2 = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))

    def attend(self, x):
        batch, tokens, channels = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, HEADS, channels // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = q * (channels // HEADS) ** -0.5
        shares = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((shares @ v).transpose(1, 2).reshape(batch, tokens, channels))

    def forward(self, x):
        x = x + self.attend(self.norm1(x)) * self.ls1
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)))) * self.ls2


class HuggingFaceBlock(nn.Module):
    """transformers' ViTLayer: a layer each for queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.intermediate, self.output = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def heads(self, x):
        return x.view(x.size()[:-1] + (HEADS, WIDTH // HEADS)).permute(0, 2, 1, 3)

    def forward(self, x):
        y = self.before(x)
        q, k, v = self.heads(self.query(y)), self.heads(self.key(y)), self.heads(self.value(y))
        shares = nn.functional.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS), dim=-1)
        y = torch.matmul(shares, v).permute(0, 2, 1, 3).contiguous()
        x = x + self.dense(y.view(y.size()[:-2] + (WIDTH,)))
        return x + self.output(F.gelu(self.intermediate(self.after(x))))


class Vit(nn.Module):
    def __init__(self, block, repeat):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.pos_embedding = nn.Parameter(0.1 * torch.randn(1, (SIZE // PATCH) ** 2 + 1, WIDTH))
        self.layers = nn.Sequential(*(block() for _ in range(2)))
        self.ln, self.head, self.repeat = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, CLASSES), repeat

    def tokens(self, x):
        n, _, h, w = x.shape
        if self.repeat:  # torchvision reshapes by the size, timm flattens
            x = self.conv_proj(x).reshape(n, WIDTH, (h // PATCH) * (w // PATCH)).permute(0, 2, 1)
            return torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        return torch.cat((self.class_token.repeat(n, 1, 1), x), dim=1)

    def forward(self, x):
        x = self.ln(self.layers(self.tokens(x) + self.pos_embedding))
        return self.head(x[:, 0])


class MeanVit(Vit):
    """No class token: the head reads the mean of all tokens."""

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2) + self.pos_embedding[:, 1:]
        return self.head(self.ln(self.layers(x).mean(dim=1)))


class ConvNextBlock(nn.Module):
    """torchvision's CNBlock where `permutes`, else that of the paper's repository."""

    def __init__(self, channels, permutes):
        super().__init__()
        self.dwconv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.gamma, self.permutes = nn.Parameter(torch.rand(channels, 1, 1)), permutes

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(F.gelu(self.pwconv1(self.norm(y))))
        if self.permutes:
            return x + self.gamma * y.permute(0, 3, 1, 2)
        return x + (self.gamma.flatten() * y).permute(0, 3, 1, 2)


class ChannelsFirstNorm(nn.Module):
    """The paper's LayerNorm of data_format channels_first."""

    def __init__(self, channels):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(channels) + 0.5), nn.Parameter(torch.randn(channels))

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class PermutedNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self, permutes):
        super().__init__()
        norm = PermutedNorm if permutes else ChannelsFirstNorm
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 4, 4), norm(16))
        self.blocks = nn.Sequential(ConvNextBlock(16, permutes), norm(16), nn.Conv2d(16, 24, 2, 2), ConvNextBlock(24, permutes))
        self.norm, self.head = nn.LayerNorm(24, eps=1e-6), nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x)).mean([-2, -1])))


class Dilated(nn.Module):
    """Dilated convolutions, one of them in groups."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 2, padding=1), nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.third = nn.Conv2d(8, 8, 3, stride=2, padding=2, dilation=2, groups=8)
        self.head = nn.Linear(8 * 16, CLASSES)

    def forward(self, x):
        x = F.relu(self.third(F.relu(self.second(F.relu(self.first(x))))))
        return self.head(F.max_pool2d(x, 2).flatten(1))


class Padded(nn.Module):
    """Padding that PyTorch computes when it runs: F.pad's list of widths, and timm's Conv2dSame of the size of its input."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 3, 2, groups=2)
        self.third, self.head = nn.Conv2d(8, 8, 3, 2), nn.Linear(8 * 4 * 4, CLASSES)

    @staticmethod
    def same(x):
        widths = []
        for extent in (x.shape[3], x.shape[2]):
            whole = torch.clamp((torch.ceil(extent / 2) - 1) * 2 + 3 - extent, min=0).int() if isinstance(extent, torch.Tensor) \
                else max((-(-extent // 2) - 1) * 2 + 3 - extent, 0)
            widths += [whole // 2, whole - whole // 2]
        return F.pad(x, widths)

    def forward(self, x):
        x = F.relu(self.first(F.pad(x, (1, 0, 0, 1))))
        x = F.relu(self.second(self.same(x)))
        x = F.relu(self.third(self.same(x)))
        return self.head(x.view(x.size(0), -1))


class Viewed(nn.Module):
    """A list whose extents PyTorch multiplies when it runs."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Conv2d(3, 8, 4, 4), nn.Linear(8 * 4 * 4, CLASSES)

    def forward(self, x):
        x = F.avg_pool2d(torch.sigmoid(self.first(x)), 2)
        return self.head(x.reshape(x.size(0), x.size(1) * x.size(2) * x.size(3)))


def randomized(module):
    for name, parameter in module.named_parameters():
        if "norm" in name or "ln" in name:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return module.eval()


def main(folder):
    torch.manual_seed(1)
    networks = {"vit_torchvision": Vit(TorchvisionBlock, True), "vit_timm": Vit(TimmBlock, True),
                "vit_timm_repeat": Vit(TimmBlock, False), "vit_transformers": Vit(HuggingFaceBlock, True),
                "dilated": Dilated(), "padded": Padded(), "viewed": Viewed(), "vit_mean": MeanVit(TimmBlock, True), "convnext_torchvision": ConvNext(True),
                "convnext_paper": ConvNext(False)}
    image = torch.randn(1, 3, SIZE, SIZE)
    for name, network in networks.items():
        for opset, axes in ((13, {"image": {0: "n"}, "logits": {0: "n"}}), (17, None)):
            torch.onnx.export(randomized(network), image, folder / f"{name}_{opset}.onnx", input_names=["image"],
                              output_names=["logits"], opset_version=opset, dynamic_axes=axes)


main(pathlib.Path(sys.argv[1]))
