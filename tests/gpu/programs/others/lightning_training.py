"""A small regression trained by Lightning with a loader that pins its batches. Nothing in it is
unordered. Prints the number of steps."""

import logging
import warnings

import lightning
import torch

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)
        )

    def training_step(self, batch, _):
        inputs, targets = batch
        return torch.nn.functional.mse_loss(self.layers(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(0)
data = torch.utils.data.TensorDataset(torch.randn(512, 32), torch.randn(512, 1))
loader = torch.utils.data.DataLoader(data, batch_size=64, pin_memory=True)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Regression(), loader)
print(trainer.global_step)
